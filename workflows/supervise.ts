// Supervise
// ---------
// The course of one supervised operation: admit, send once, settle; on silence unknown, and ask for
// ever. Calls and jobs take the same course: what differs is in the ledger's chain and the adapter.
//
// Invariants:
//   W1. The ledger says where the operation stands; this workflow decides only what to do next.
//   W2. A cancel of the workflow is data: it asks for a stop, and the asking goes on.
//   W3. It ends only when the ledger says that nothing is open, or that nothing was placed.
//   W4. A supervisor without a request sends nothing: it withdraws, and asks.

import {
  ApplicationFailure,
  allHandlersFinished,
  CancelledFailure,
  CancellationScope,
  condition,
  workflowInfo,
} from '@temporalio/workflow';
import type { Asked } from '../activities/contract.js';
import { type OperationKind, operationIdOf } from '../domain/identity.js';
import { describeProblems, type Problem } from '../domain/input-fields.js';
import { newestAttempt, nextStep } from '../domain/next-step.js';
import {
  type OperationResult,
  refusedResult,
  resultOf,
  unavailableResult,
} from '../domain/operation-result.js';
import { describeRefusal } from '../domain/refusal.js';
import { readStoredInput } from '../domain/stored-input.js';
import { type Followed, follow } from './follow.js';
import { listen } from './handlers.js';
import { ledgerSteps, placeHold } from './steps.js';
import { admitted, explain, note, see, type Supervision } from './supervision.js';

export type ReadAsked =
  | { readonly kind: 'asked'; readonly asked: Asked }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

export async function superviseOperation(
  kind: OperationKind,
  raw: unknown,
  read: (raw: unknown) => ReadAsked,
): Promise<OperationResult> {
  const stored = readStoredInput(raw);
  const asking: ReadAsked | undefined = stored === undefined ? read(raw) : undefined;
  const asked = asking?.kind === 'asked' ? asking.asked : undefined;
  const supervision = openSupervision(kind, asked, stored);
  listen(supervision);
  if (asking?.kind === 'problems')
    return refuseInput(supervision, describeProblems(asking.problems));
  return CancellationScope.nonCancellable(() => supervise(supervision));
}

function openSupervision(
  kind: OperationKind,
  asked: Asked | undefined,
  stored: ReturnType<typeof readStoredInput>,
): Supervision {
  const { workflowId, firstExecutionRunId } = workflowInfo();
  const accountId = asked?.input.accountId ?? stored?.accountId ?? '';
  return {
    ...{ kind, asked, accountId, workflowId },
    operationId:
      asked?.input.operationId ?? stored?.operationId ?? operationIdOf(kind, workflowId, accountId),
    timeline: [],
    asks: [asked?.input.askId ?? firstExecutionRunId],
    verdicts: new Map(),
    wakeCount: 0,
    handledWakeCount: 0,
    roundCount: 0,
    wish: undefined,
    cancelStored: false,
    isWorkflowCancelled: false,
    isHandingOver: false,
    isTaskTold: false,
    isOver: false,
    snapshot: undefined,
    shown: undefined,
    result: undefined,
    explanation: 'Not asked for yet.',
  };
}

async function supervise(supervision: Supervision): Promise<OperationResult> {
  for (;;) {
    const askId = supervision.asks[0] ?? workflowInfo().firstExecutionRunId;
    // Open already where an asking with other terms was admitted anew while the last one ended.
    const isOpen = supervision.snapshot?.outcome === null;
    const result = isOpen ? await goOn(supervision, askId) : await serveAsk(supervision, askId);
    supervision.result = result;
    const mayBeAskedAgain = result.outcome === 'refused' || result.outcome === 'unavailable';
    const isAskedAgain = (): boolean => mayBeAskedAgain && supervision.asks.length > 1;
    const isTakenOver = (): boolean => supervision.result === undefined;
    await condition(() => isTakenOver() || isAskedAgain() || allHandlersFinished());
    if (isTakenOver()) continue;
    if (isAskedAgain()) {
      supervision.asks.shift();
      supervision.result = undefined;
      continue;
    }
    supervision.isOver = true;
    // Settle first, then end: so the list view tells the truth about a stop that was asked for.
    if (supervision.isWorkflowCancelled) throw new CancelledFailure('a stop was asked for');
    return result;
  }
}

async function serveAsk(supervision: Supervision, askId: string): Promise<OperationResult> {
  const { asked, operationId, workflowId } = supervision;
  if (asked === undefined) return takeUpStored(supervision, askId);
  const placed = await placeHold({ ...asked, operationId, workflowId, askId });
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
      return goOn(supervision, askId);
  }
}

/** Its first supervisor is gone: it goes on from where the ledger says that the operation stands. */
async function takeUpStored(supervision: Supervision, askId: string): Promise<OperationResult> {
  const { accountId, operationId } = supervision;
  const snapshot = await ledgerSteps().findOperation({ accountId, operationId });
  if (snapshot === null) {
    return refuseInput(
      supervision,
      `operationId is "${operationId}", which the ledger does not have for account "${accountId}"`,
    );
  }
  note(supervision, 'taken up again: its first supervisor is gone');
  see(supervision, snapshot);
  return goOn(supervision, askId);
}

async function goOn(supervision: Supervision, askId: string): Promise<OperationResult> {
  const followed: Followed = await follow(supervision, askId);
  switch (followed.kind) {
    case 'ended':
      return followed.result;
    case 'unavailable':
      return endUnavailable(supervision, askId, {
        reason: 'ledger_unavailable',
        claim: followed.claim,
      });
  }
}

/** The ledger was away before anything left: this ask is ended there, whenever it can be told. */
async function endUnavailable(
  supervision: Supervision,
  askId: string,
  ending: { readonly reason: string; readonly claim?: string },
): Promise<OperationResult> {
  const { accountId, operationId } = supervision;
  explain(
    supervision,
    'The ledger could not be reached. Nothing was sent, and nothing of this ask will be; it is being ended there.',
  );
  note(supervision, `unavailable: ${ending.reason}`);
  const snapshot = await ledgerSteps().endAsk({ accountId, operationId, askId, ...ending });
  note(supervision, 'the ask has ended in the ledger');
  if (snapshot !== null && snapshot.outcome === null && nextStep(snapshot).kind === 'ask') {
    supervision.snapshot = snapshot;
    return goOn(supervision, askId);
  }
  // An earlier attempt, or another sender of this one, may have settled meanwhile: that is the end.
  return snapshot?.outcome === 'settled' ? resultOf(snapshot) : unavailableResult();
}

async function refuseInput(supervision: Supervision, message: string): Promise<never> {
  for (const askId of supervision.asks) {
    supervision.verdicts.set(askId, { status: 'invalid', message });
  }
  explain(supervision, `Refused: ${message}. Nothing was held and nothing was sent.`);
  // Nothing more will come: whoever waits hears so.
  supervision.isOver = true;
  await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  throw ApplicationFailure.nonRetryable(message, 'INVALID_INPUT');
}
