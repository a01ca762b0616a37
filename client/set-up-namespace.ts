// Set up a namespace
// ------------------
// What Holdfast needs at Temporal: its search attributes, and the schedule that sweeps. Done twice it
// changes nothing.

import {
  type Client,
  isGrpcServiceError,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import { HoldfastError } from '../domain/failure.js';

/** Temporal's own numbers of these types, as its API defines them. */
const INDEXED_VALUE_TYPES = { Keyword: 2, Int: 3, Bool: 5, Datetime: 6 } as const;
type AttributeTypes = Readonly<Record<string, keyof typeof INDEXED_VALUE_TYPES>>;

export const SWEEPER_SCHEDULE_ID = 'holdfast-sweeper';
const GRPC_NOT_FOUND = 5;

/** Throws HoldfastError INVALID_CONFIGURATION where the namespace is not there. */
export async function registerSearchAttributes(
  client: Client,
  types: AttributeTypes,
): Promise<readonly string[]> {
  const { namespace } = client.options;
  try {
    await client.connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(
        Object.entries(types).map(([name, type]) => [name, INDEXED_VALUE_TYPES[type]]),
      ),
    });
  } catch (error) {
    throw explained(error, namespace);
  }
  return Object.keys(types);
}

/** Status `created`, `exists`, or `exists_otherwise`: somebody has made one of that id for something else. */
export async function scheduleSweeps(
  client: Client,
  options: { readonly taskQueue: string; readonly everyMs: number },
): Promise<'created' | 'exists' | 'exists_otherwise'> {
  const { taskQueue, everyMs } = options;
  try {
    await client.schedule.create({
      scheduleId: SWEEPER_SCHEDULE_ID,
      spec: { intervals: [{ every: everyMs }], jitter: Math.min(5_000, Math.floor(everyMs / 10)) },
      action: { type: 'startWorkflow', workflowType: 'sweepHolds', taskQueue, args: [] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 60_000 },
    });
    return 'created';
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) {
      throw explained(error, client.options.namespace);
    }
  }
  const { action } = await client.schedule.getHandle(SWEEPER_SCHEDULE_ID).describe();
  return action.workflowType === 'sweepHolds' && action.taskQueue === taskQueue
    ? 'exists'
    : 'exists_otherwise';
}

function explained(error: unknown, namespace: string): unknown {
  if (!isGrpcServiceError(error) || (error.code as number) !== GRPC_NOT_FOUND) return error;
  return new HoldfastError(
    'INVALID_CONFIGURATION',
    `namespace "${namespace}" does not exist there; create it with: temporal operator namespace create -n ${namespace}, or correct TEMPORAL_NAMESPACE`,
    { cause: error },
  );
}
