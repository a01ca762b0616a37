// Sweep
// -----
// Every open operation has somebody who asks about it. The ledger says whose question is overdue;
// whether a supervisor lives is asked of Temporal itself, never of a list that lags. Who is missing or
// stuck is started again, once, without a request: it asks, and sends nothing.
//
// Invariants:
//   R1. Nothing is started that the ledger does not know as open and overdue at that moment.
//   R2. At most so many a minute, counted in the ledger, over all sweepers.

import { claimRestart, listOverdue, type OverdueOperation, tellPaused } from '../ledger/sweep.js';
import type { SweepActivities, SweepOptions, SweepSummary, SweptStatus } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { tellAlerts } from './log-state.js';
import { toApplicationFailure } from './to-application-failure.js';

export const SWEEP_DEFAULTS: Required<SweepOptions> = {
  graceMs: 30_000,
  perMinute: 60,
  countMax: 500,
  isDryRun: false,
};

const AGAIN_AFTER_MS = 10 * 60_000;

/** What Temporal itself says of a supervisor. */
export interface FoundSupervisor {
  readonly supervisor: 'alive' | 'paused' | 'missing' | 'stuck';
  /** For people. */
  readonly why: string;
}

/** The supervisors as they are at Temporal; the composition root brings it. */
export interface Supervisors {
  look(workflowId: string): Promise<FoundSupervisor>;
  /** Starts one without a request. `replaces`: one that is stuck is ended first. */
  startAgain(
    operation: Pick<OverdueOperation, 'kind' | 'accountId' | 'operationId' | 'workflowId'>,
    options: { readonly replaces: boolean },
  ): Promise<void>;
}

export interface Sweeping {
  readonly dependencies: Pick<ActivityDependencies, 'ledger' | 'logger' | 'telemetry'>;
  readonly supervisors: Supervisors;
}

export function createSweepActivities(sweeping: Sweeping): SweepActivities {
  return {
    async sweep(options) {
      try {
        return await sweep(sweeping, options);
      } catch (error) {
        throw toApplicationFailure(error);
      }
    },
  };
}

export async function sweep(sweeping: Sweeping, given: SweepOptions): Promise<SweepSummary> {
  const options = { ...SWEEP_DEFAULTS, ...given };
  const overdue = await listOverdue(sweeping.dependencies.ledger, options);
  const swept: SweepSummary['swept'][number][] = [];
  for (const operation of overdue) {
    const { operationKey, workflowId, overdueMs, unit } = operation;
    const heldAmount = operation.heldAmount.toString();
    const found = await sweeping.supervisors.look(workflowId);
    const status = await act(sweeping, { operation, found, options });
    swept.push({
      ...{ operationKey, workflowId, overdueMs, heldAmount, unit, status },
      why: found.why,
    });
  }
  return { swept };
}

async function act(
  sweeping: Sweeping,
  given: {
    readonly operation: OverdueOperation;
    readonly found: FoundSupervisor;
    readonly options: Required<SweepOptions>;
  },
): Promise<SweptStatus> {
  const { operation, found, options } = given;
  const { dependencies, supervisors } = sweeping;
  const { ledger, telemetry } = dependencies;
  if (found.supervisor === 'alive') return 'owned';
  if (found.supervisor === 'paused') {
    if (!options.isDryRun) await tellPaused(ledger, operation.operationKey);
    return 'paused';
  }
  if (options.isDryRun) return 'would_restart';
  const isStuck = found.supervisor === 'stuck';
  const claim = await claimRestart(ledger, {
    operationKey: operation.operationKey,
    kind: isStuck ? 'supervisor_stuck' : 'supervisor_restarted',
    why: found.why,
    perMinute: options.perMinute,
    againAfterMs: AGAIN_AFTER_MS,
  });
  if (claim.status === 'claimed_before') return 'restarted_before';
  if (claim.status !== 'claimed') return claim.status;
  tellAlerts(dependencies, claim.snapshot);
  telemetry.supervisorRestarted();
  // One that is stuck can do nothing any more; what it knew is in the ledger.
  await supervisors.startAgain(operation, { replaces: isStuck });
  return isStuck ? 'restarted_stuck' : 'restarted';
}
