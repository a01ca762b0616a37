// Steps
// -----
// The activities as a supervisor uses them, with the one reason for each limit.

import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  DispatchActivities,
  DispatchInput,
  LedgerActivities,
  NotKnownYet,
  ReconcileActivities,
  TaskActivities,
} from '../activities/contract.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import { segmentMs } from '../domain/lookup-schedule.js';
import { isEnded } from '../domain/operation.js';
import { shownOf } from '../domain/shown.js';
import { taskQueuesOf } from './task-queues.js';

/** What the steps need to know of the supervision, and may change. */
interface Woken {
  readonly accountId: string;
  readonly operationId: string;
  readonly asked: unknown;
  readonly wish: unknown;
  readonly cancelStored: boolean;
  readonly wakeCount: number;
  handledWakeCount: number;
  roundCount: number;
}

// Idempotent, one at a time, and bounded by its own 5 s: local, because each Temporal transition
// costs more than the whole ledger.
export const { placeHold } = proxyLocalActivities<LedgerActivities>({
  startToCloseTimeout: '15 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '10 seconds' },
  cancellationType: ActivityCancellationType.ABANDON,
});

// After the fence a step is repeated without limit: the ledger must hear it.
export const ledgerSteps = (
  taskQueue = workflowInfo().taskQueue,
): LedgerActivities & TaskActivities =>
  proxyActivities<LedgerActivities & TaskActivities>({
    taskQueue: taskQueuesOf(taskQueue).ledger,
    startToCloseTimeout: '15 seconds',
    retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '10 seconds' },
    cancellationType: ActivityCancellationType.ABANDON,
  });

const UNTRUSTED_PAUSE = '10 seconds';
const SEGMENT_WAIT_MS = 30_000;
/** What one round of questions may take, in milliseconds. */
const ROUND_MS_MAX = 30_000;

export type Sent =
  | { readonly kind: 'recorded'; readonly snapshot: OperationSnapshot }
  | { readonly kind: 'unavailable'; readonly claim: string };

/**
 * One send. Its activity has one attempt, but the fence is what counts. Ended without an outcome, it
 * says nothing about the send: the ledger is read, and what was on its way is unknown.
 */
export async function dispatchOnce(supervision: Woken, input: DispatchInput): Promise<Sent> {
  const { dispatch } = proxyActivities<DispatchActivities>({
    // The provider's limit is a timer inside the activity; recording may wait for the ledger.
    startToCloseTimeout: '7 days',
    heartbeatTimeout: input.heartbeatMs,
    retry: { maximumAttempts: 1 },
    cancellationType: ActivityCancellationType.ABANDON,
  });
  try {
    const result = await dispatch(input);
    switch (result.kind) {
      case 'recorded':
      case 'unavailable':
        return result;
      case 'handed_over':
        return { kind: 'recorded', snapshot: await ledgerSteps().recordHandedOver(result.record) };
      case 'untrusted':
        await sleep(UNTRUSTED_PAUSE);
        return {
          kind: 'recorded',
          snapshot: await ledgerSteps().readOperation(refOf(supervision)),
        };
    }
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const detail = `the sender ended without an outcome: ${error.cause?.message ?? error.message}`;
    return {
      kind: 'recorded',
      snapshot: await ledgerSteps().markUnknown({ operationKey: input.operationKey, detail }),
    };
  }
}

function refOf(supervision: Woken): { accountId: string; operationId: string } {
  return { accountId: supervision.accountId, operationId: supervision.operationId };
}

// The retry policy is the waiting: a retry adds no history, and the delay comes from the activity.
// It ends now and then, to look at the history's length and to show what was answered last.
const questions = (limitMs: number): ReconcileActivities =>
  proxyActivities<ReconcileActivities>({
    taskQueue: taskQueuesOf(workflowInfo().taskQueue).reconcile,
    startToCloseTimeout: '30 seconds',
    scheduleToCloseTimeout: limitMs,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '1 minute' },
  });

type Asked =
  | { readonly kind: 'news'; readonly snapshot: OperationSnapshot }
  | { readonly kind: 'woken' }
  | { readonly kind: 'segment'; readonly waitMs: number };

/**
 * Asks until the ledger learns something new, or until somebody wakes the supervisor. Woken already,
 * it asks now, due or not, and answers after one round; only a wish to stop is heard in between.
 */
export async function askUntilNews(
  supervision: Woken,
  snapshot: OperationSnapshot,
): Promise<OperationSnapshot> {
  const handled = supervision.handledWakeCount;
  const isForced = supervision.wakeCount > handled;
  supervision.handledWakeCount = supervision.wakeCount;
  const isWoken = isForced
    ? (): boolean => mustStoreWish(supervision)
    : (): boolean => supervision.wakeCount > handled;
  const asked = await askOnce(supervision, { snapshot, isWoken, isForced });
  if (isForced && asked.kind !== 'woken') supervision.roundCount += 1;
  switch (asked.kind) {
    case 'news':
      return asked.snapshot;
    case 'segment':
      // The delay was longer than what was left of the segment: it is waited out here.
      if (!isForced) await condition(isWoken, asked.waitMs);
      return ledgerSteps().readOperation(refOf(supervision));
    case 'woken':
      return snapshot;
  }
}

export function mustStoreWish({
  wish,
  cancelStored,
}: Pick<Woken, 'wish' | 'cancelStored'>): boolean {
  return wish !== undefined && !cancelStored;
}

interface Asking {
  readonly snapshot: OperationSnapshot;
  readonly isWoken: () => boolean;
  /** Asked now, due or not, and answered after one round. */
  readonly isForced: boolean;
}

async function askOnce(supervision: Woken, asking: Asking): Promise<Asked> {
  const { snapshot, isWoken, isForced } = asking;
  const scope = new CancellationScope();
  const limitMs = segmentLimitMs(snapshot);
  try {
    return await scope.run(() => {
      const answer = questions(limitMs)
        .ask({
          ...refOf(supervision),
          shown: shownOf(snapshot),
          rights: supervision.asked === undefined ? 'asks_only' : 'all',
          isWoken: isForced,
        })
        .then((answered): Asked => ({ kind: 'news', snapshot: answered }), segmentEnd);
      const wake = condition(isWoken).then((): Asked => ({ kind: 'woken' }));
      // Rejected when the scope ends, after the race is over.
      wake.catch(() => undefined);
      return Promise.race([answer, wake]);
    });
  } finally {
    scope.cancel();
  }
}

function segmentLimitMs({ attempts }: OperationSnapshot): number {
  const waitedMs = Math.max(0, ...attempts.map((each) => each.unknownMs ?? each.sentMs ?? 0));
  const limits = attempts
    .filter(({ phase }) => !isEnded(phase))
    .map(({ timings }) =>
      segmentMs({ firstMs: timings.questionFirstMs, maxMs: timings.questionMaxMs }, waitedMs),
    );
  // No shorter than what one round of questions may take.
  return Math.max(ROUND_MS_MAX, Math.min(...limits));
}

function segmentEnd(error: unknown): Asked {
  if (isCancellation(error)) return { kind: 'woken' };
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof ApplicationFailure && cause.type === 'CHARGE_NOT_KNOWN_YET') {
    const [details] = (cause.details ?? []) as [NotKnownYet?];
    return { kind: 'segment', waitMs: details?.nextDelayMs ?? SEGMENT_WAIT_MS };
  }
  return { kind: 'segment', waitMs: SEGMENT_WAIT_MS };
}
