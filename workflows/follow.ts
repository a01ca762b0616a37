// Follow
// ------
// One admitted operation, step by step, to its end: the loop in the middle of every supervisor.

import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import { nextStep, type NextStep, offersAfter } from '../domain/next-step.js';
import { type OperationResult, resultOf } from '../domain/operation-result.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import { childAnsweredSignal } from './messages.js';
import { askUntilNews, dispatchOnce, ledgerSteps, mustStoreWish } from './steps.js';
import { rightsOf, see, type Supervision } from './supervision.js';

const NOTHING_CHANGED_PAUSE = '5 seconds';

export type Followed =
  | { readonly kind: 'ended'; readonly result: OperationResult }
  /** The ledger was away before anything left under this claim. */
  | { readonly kind: 'unavailable'; readonly claim: string };

/** Goes on, step by step, until the ledger says that nothing is open. */
export async function follow(supervision: Supervision, askId: string): Promise<Followed> {
  for (;;) {
    let snapshot = supervision.snapshot as OperationSnapshot;
    const { operationKey } = snapshot;
    if (mustStoreWish(supervision) && snapshot.outcome === null) {
      see(supervision, await storeCancel(supervision, operationKey));
      continue;
    }
    const step = nextStep(snapshot, rightsOf(supervision));
    switch (step.kind) {
      case 'done':
        see(supervision, snapshot);
        return { kind: 'ended', result: resultOf(snapshot) };
      case 'withdraw':
        snapshot = await ledgerSteps().withdraw({ operationKey, reason: step.reason });
        break;
      case 'next_attempt':
        snapshot = await ledgerSteps().nextAttempt({
          operationKey,
          afterAttempt: step.afterAttempt,
          offer: step.offer,
          askId,
        });
        await pauseIfNothingChanged(step, snapshot);
        break;
      case 'dispatch': {
        see(supervision, snapshot, 'sending');
        const sent = await heedingCancel(supervision, operationKey, () =>
          dispatchOnce(supervision, {
            operationKey,
            attemptNo: step.attempt.attemptNo,
            askId,
            heartbeatMs: step.attempt.timings.heartbeatMs,
            ...offersAfter(snapshot),
          }),
        );
        if (sent.kind === 'unavailable') {
          return { kind: 'unavailable', claim: sent.claim };
        }
        snapshot = sent.snapshot;
        await pauseIfNothingChanged(step, snapshot);
        break;
      }
      case 'ask':
        see(supervision, snapshot);
        if (workflowInfo().continueAsNewSuggested) {
          if (await handOver(supervision)) {
            return continueAsNew<(input: unknown) => Promise<OperationResult>>(
              inputOf(supervision, askId),
            );
          }
          continue;
        }
        snapshot = await askUntilNews(supervision, snapshot);
        break;
    }
    see(supervision, snapshot);
    await tellTask(supervision, snapshot);
  }
}

/** A task hears of an answer that is there before its charge is: then it need not wait for that. */
async function tellTask(supervision: Supervision, snapshot: OperationSnapshot): Promise<void> {
  const { parent } = workflowInfo();
  const isEarly = snapshot.answerRef !== null && snapshot.outcome === null;
  if (!isEarly || supervision.isTaskTold || parent === undefined || snapshot.taskId === null)
    return;
  supervision.isTaskTold = true;
  const { operationId } = supervision;
  await getExternalWorkflowHandle(parent.workflowId)
    .signal(childAnsweredSignal, { operationId })
    // A task that has ended waits for nothing.
    .catch(() => undefined);
}

/**
 * Lets whoever waits go, to ask the next run. False when a wish to stop came meanwhile: it is stored
 * by this run, which heard it.
 */
async function handOver(supervision: Supervision): Promise<boolean> {
  supervision.isHandingOver = true;
  // Whoever made the wish waits until it is stored, which is done by this run alone.
  await condition(() => allHandlersFinished() || mustStoreWish(supervision));
  supervision.isHandingOver = false;
  return !mustStoreWish(supervision);
}

/** What the next run is started with. */
function inputOf({ asked, accountId, operationId }: Supervision, askId: string): object {
  return asked === undefined
    ? { accountId, operationId, stored: true }
    : { ...asked.input, operationId, askId };
}

/** A step that is due again at once did nothing: it waits, so that nobody runs hot. */
async function pauseIfNothingChanged(step: NextStep, snapshot: OperationSnapshot): Promise<void> {
  const next = nextStep(snapshot);
  const isSame =
    next.kind === step.kind &&
    (next.kind !== 'dispatch' ||
      step.kind !== 'dispatch' ||
      next.attempt.attemptNo === step.attempt.attemptNo);
  if (isSame) await sleep(NOTHING_CHANGED_PAUSE);
}

/** Stores the wish to stop, before anybody is told of it; what was not sent is withdrawn with it. */
async function storeCancel(
  supervision: Supervision,
  operationKey: string,
): Promise<OperationSnapshot> {
  const wish = supervision.wish ?? { by: 'temporal cancel' };
  const snapshot = await ledgerSteps().requestCancel({ operationKey, ...wish });
  supervision.cancelStored = true;
  return snapshot;
}

/** A wish to stop that arrives while a send waits for its turn is stored at once: the fence sees it. */
async function heedingCancel<T>(
  supervision: Supervision,
  operationKey: string,
  work: () => Promise<T>,
): Promise<T> {
  const watch = new CancellationScope();
  const stored = watch
    .run(() => condition(() => mustStoreWish(supervision)))
    .then(
      () =>
        CancellationScope.nonCancellable(async () => {
          supervision.snapshot = await storeCancel(supervision, operationKey);
        }),
      () => undefined,
    );
  const result = await work();
  watch.cancel();
  await stored;
  return result;
}
