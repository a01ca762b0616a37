// llmCall
// -------
// Supervises one LLM call: admit, send once, settle; on silence unknown, and look up for ever.
//
// Invariants:
//   W1. The ledger says where the operation stands; this workflow decides only what to do next.
//   W2. A cancel of the workflow is data: it asks for a stop, and the asking goes on.
//   W3. It ends only when the ledger says that nothing is open, or that nothing was placed.

import {
  ApplicationFailure,
  allHandlersFinished,
  CancelledFailure,
  CancellationScope,
  condition,
  continueAsNew,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import { describeProblems, readLlmCallInput } from '../domain/call-input.js';
import {
  type LlmCallResult,
  refusedResult,
  resultOf,
  unavailableResult,
} from '../domain/call-result.js';
import { operationIdOf } from '../domain/identity.js';
import { newestAttempt, nextStep, type NextStep, offersAfter } from '../domain/next-step.js';
import { describeRefusal } from '../domain/refusal.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import { askUntilNews, dispatchOnce, ledgerSteps, placeHold } from './steps.js';
import { type AdmitVerdict, admitUpdate } from './messages.js';
import { answerOther, otherInputOf } from './other-terms.js';
import {
  admitted,
  askIdOf,
  explain,
  listen,
  note,
  see,
  type Supervision,
  verdictOf,
} from './supervision.js';

const NOTHING_CHANGED_PAUSE = '5 seconds';

export async function llmCall(raw: unknown): Promise<LlmCallResult> {
  const read = readLlmCallInput(raw);
  const info = workflowInfo();
  const input = read.kind === 'input' ? read.input : undefined;
  const supervision: Supervision = {
    input: input ?? { accountId: '', route: '', maxTokens: 1 },
    workflowId: info.workflowId,
    operationId: input?.operationId ?? operationIdOf(info.workflowId, input?.accountId ?? ''),
    timeline: [],
    asks: [input?.askId ?? info.firstExecutionRunId],
    verdicts: new Map(),
    wakeCount: 0,
    cancelRequested: false,
    cancelStored: false,
    isHandingOver: false,
    snapshot: undefined,
    shownState: undefined,
    result: undefined,
    explanation: 'Not asked for yet.',
  };
  listen(supervision);
  answerAskings(supervision);
  if (read.kind === 'problems') return refuseInput(supervision, describeProblems(read.problems));
  return CancellationScope.nonCancellable(() => supervise(supervision));
}

function answerAskings(supervision: Supervision): void {
  setHandler(
    admitUpdate,
    (request: unknown) =>
      CancellationScope.nonCancellable(async () => {
        const askId = askIdOf(request) ?? supervision.asks[0] ?? '';
        const other = otherInputOf(request, supervision.input);
        if (other !== undefined) return answerOther(supervision, askId, other);
        if (!supervision.asks.includes(askId)) supervision.asks.push(askId);
        await condition(() => verdictOf(supervision, askId) !== undefined);
        return verdictOf(supervision, askId) as AdmitVerdict;
      }),
    { description: 'Answers whether the call was admitted, and why not' },
  );
}

async function supervise(supervision: Supervision): Promise<LlmCallResult> {
  for (;;) {
    const askId = supervision.asks[0] ?? workflowInfo().firstExecutionRunId;
    const result = await serveAsk(supervision, askId);
    supervision.result = result;
    const mayBeAskedAgain = result.outcome === 'refused' || result.outcome === 'unavailable';
    await condition(
      () => allHandlersFinished() || (mayBeAskedAgain && supervision.asks.length > 1),
    );
    if (mayBeAskedAgain && supervision.asks.length > 1) {
      supervision.asks.shift();
      supervision.result = undefined;
      continue;
    }
    // Settle first, then end: so the list view tells the truth about a stop that was asked for.
    if (supervision.cancelRequested) throw new CancelledFailure('a stop was asked for');
    return result;
  }
}

async function serveAsk(supervision: Supervision, askId: string): Promise<LlmCallResult> {
  const { input, operationId } = supervision;
  const { workflowId } = workflowInfo();
  const placed = await placeHold({ input, operationId, workflowId, askId });
  switch (placed.kind) {
    case 'invalid':
      return refuseInput(supervision, describeProblems(placed.problems));
    case 'refused':
      supervision.verdicts.set(askId, { status: 'refused', refusal: placed.refusal });
      explain(
        supervision,
        `Refused: ${describeRefusal(placed.refusal)}. Nothing was held and nothing was sent.`,
      );
      return refusedResult(placed.refusal);
    case 'unavailable':
      supervision.verdicts.set(askId, { status: 'unavailable', reason: placed.reason });
      return endUnavailable(supervision, askId, { reason: placed.reason });
    case 'closed':
      see(supervision, placed.snapshot);
      supervision.verdicts.set(askId, { status: 'closed', result: resultOf(placed.snapshot) });
      return resultOf(placed.snapshot);
    case 'admitted':
      supervision.snapshot = placed.snapshot;
      supervision.verdicts.set(askId, admitted(placed.snapshot));
      note(supervision, `admitted, holding ${newestAttempt(placed.snapshot).heldAmount}`);
      return follow(supervision, askId);
  }
}

/** Goes on, step by step, until the ledger says that nothing is open. */
async function follow(supervision: Supervision, askId: string): Promise<LlmCallResult> {
  for (;;) {
    let snapshot = supervision.snapshot as OperationSnapshot;
    const { operationKey } = snapshot;
    if (supervision.cancelRequested && !supervision.cancelStored && snapshot.outcome === null) {
      see(supervision, await storeCancel(supervision, operationKey));
      continue;
    }
    const step = nextStep(snapshot);
    switch (step.kind) {
      case 'done':
        see(supervision, snapshot);
        return resultOf(snapshot);
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
        see(supervision, snapshot, 'dispatched');
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
          return endUnavailable(supervision, askId, {
            reason: 'ledger_unavailable',
            claim: sent.claim,
          });
        }
        snapshot = sent.snapshot;
        await pauseIfNothingChanged(step, snapshot);
        break;
      }
      case 'ask':
        see(supervision, snapshot);
        if (workflowInfo().continueAsNewSuggested) {
          if (await handOver(supervision)) {
            return continueAsNew<typeof llmCall>({ ...supervision.input, askId });
          }
          continue;
        }
        snapshot = await askUntilNews(supervision, snapshot);
        break;
    }
    see(supervision, snapshot, step.kind === 'dispatch' ? undefined : supervision.shownState);
  }
}

/**
 * Lets whoever waits go, to ask the next run. False when a wish to stop came meanwhile: it is stored
 * by this run, which heard it.
 */
async function handOver(supervision: Supervision): Promise<boolean> {
  supervision.isHandingOver = true;
  await condition(allHandlersFinished);
  supervision.isHandingOver = false;
  return !supervision.cancelRequested || supervision.cancelStored;
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

/** Stores the wish to stop; what was not sent is withdrawn with it. */
function storeCancel(supervision: Supervision, operationKey: string): Promise<OperationSnapshot> {
  supervision.cancelStored = true;
  return ledgerSteps().requestCancel({ operationKey, by: 'temporal cancel' });
}

/** A wish to stop that arrives while a send waits for its turn is stored at once: the fence sees it. */
async function heedingCancel<T>(
  supervision: Supervision,
  operationKey: string,
  work: () => Promise<T>,
): Promise<T> {
  const watch = new CancellationScope();
  const stored = watch
    .run(() => condition(() => supervision.cancelRequested && !supervision.cancelStored))
    .then(
      () => CancellationScope.nonCancellable(() => storeCancel(supervision, operationKey)),
      () => undefined,
    );
  const result = await work();
  watch.cancel();
  await stored;
  return result;
}

/** The ledger was away before anything left: this ask is ended there, whenever it can be told. */
async function endUnavailable(
  supervision: Supervision,
  askId: string,
  ending: { readonly reason: string; readonly claim?: string },
): Promise<LlmCallResult> {
  const { input, operationId } = supervision;
  explain(
    supervision,
    'The ledger could not be reached. Nothing was sent, and nothing of this ask will be; it is being ended there.',
  );
  note(supervision, `unavailable: ${ending.reason}`);
  const { accountId } = input;
  const snapshot = await ledgerSteps().endAsk({ accountId, operationId, askId, ...ending });
  note(supervision, 'the ask has ended in the ledger');
  if (snapshot !== null && snapshot.outcome === null && nextStep(snapshot).kind === 'ask') {
    supervision.snapshot = snapshot;
    return follow(supervision, askId);
  }
  // An earlier attempt, or another sender of this one, may have settled meanwhile: that is the end.
  return snapshot?.outcome === 'settled' ? resultOf(snapshot) : unavailableResult();
}

async function refuseInput(supervision: Supervision, message: string): Promise<never> {
  for (const askId of supervision.asks) {
    supervision.verdicts.set(askId, { status: 'invalid', message });
  }
  explain(supervision, `Refused: ${message}. Nothing was held and nothing was sent.`);
  await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  throw ApplicationFailure.nonRetryable(message, 'INVALID_INPUT');
}
