// Supervision
// -----------
// What one supervisor knows and shows. What it shows changes only when something did, in one upsert.

import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { Asked, CancelWish } from '../activities/contract.js';
import { describeDetails, explainOperation } from '../domain/explain.js';
import type { OperationKind } from '../domain/identity.js';
import { newestAttempt, type SupervisorRights } from '../domain/next-step.js';
import { answerStatusOf, type OperationResult } from '../domain/operation-result.js';
import { shownOf } from '../domain/shown.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import type { AdmitVerdict, AnswerKnown, TimelineEntry } from './messages.js';
import { searchAttributesOf } from './search-attributes.js';

export interface Supervision {
  readonly kind: OperationKind;
  /** Undefined for a supervisor that was started again for a stored operation. */
  asked: Asked | undefined;
  readonly accountId: string;
  readonly operationId: string;
  readonly workflowId: string;
  readonly timeline: TimelineEntry[];
  /** Asks that arrived by update, in order; the running one first. */
  readonly asks: string[];
  readonly verdicts: Map<string, AdmitVerdict>;
  wakeCount: number;
  /** Up to this one the wakes were answered with a round of questions. */
  handledWakeCount: number;
  /** How many rounds of questions somebody waited for and has got. */
  roundCount: number;
  /** The first wish to stop; undefined while nobody has one. */
  wish: CancelWish | undefined;
  cancelStored: boolean;
  /** The wish came by cancelling the workflow, so that it closes as Canceled. */
  isWorkflowCancelled: boolean;
  /** The run is about to continue as new: whoever waits hears so and asks the next run. */
  isHandingOver: boolean;
  /** The task above was told that the answer is there. */
  isTaskTold: boolean;
  /** The run has nothing left to do. */
  isOver: boolean;
  snapshot: OperationSnapshot | undefined;
  shown: string | undefined;
  result: OperationResult | undefined;
  explanation: string;
}

export function rightsOf({ asked }: Supervision): SupervisorRights {
  return asked === undefined ? 'asks_only' : 'all';
}

/** An ask that joins an operation which stands open, or has ended, is answered with that. */
export function verdictOf(supervision: Supervision, askId: string): AdmitVerdict | undefined {
  const own = supervision.verdicts.get(askId);
  if (own !== undefined) return own;
  if (supervision.result !== undefined && supervision.snapshot !== undefined) {
    return { status: 'closed', result: supervision.result };
  }
  return supervision.snapshot === undefined ? undefined : admitted(supervision.snapshot);
}

export function answerOf(supervision: Supervision): AnswerKnown | undefined {
  const { result, snapshot } = supervision;
  if (result !== undefined) {
    return { status: answerStatusOf(result), answerRef: result.answerRef, result };
  }
  const answerRef = snapshot?.answerRef ?? null;
  if (answerRef === null && supervision.isHandingOver) {
    return { status: 'unknown', answerRef: null, result: null };
  }
  return answerRef === null ? undefined : { status: 'answered', answerRef, result: null };
}

export function admitted(snapshot: OperationSnapshot): AdmitVerdict {
  const attempt = newestAttempt(snapshot);
  return {
    status: 'admitted',
    operationKey: snapshot.operationKey,
    heldAmount: attempt.heldAmount,
    unit: attempt.unit,
    route: attempt.route,
  };
}

/**
 * Takes a snapshot in, and shows it where people look. `ahead`: the send is handed out, and the
 * ledger will know in a moment.
 */
export function see(
  supervision: Supervision,
  snapshot: OperationSnapshot,
  ahead?: 'sending',
): void {
  supervision.snapshot = snapshot;
  supervision.explanation = explainOperation(snapshot);
  // No event of the history, unlike the search attributes: it tells the newest answer.
  setCurrentDetails(describeDetails(snapshot));
  const shown = `${ahead ?? ''}${shownOf(snapshot)}`;
  // From the hand-out to the first word of the send nothing new can be said.
  if (shown === supervision.shown) return;
  supervision.shown = shown;
  const state = ahead === undefined ? snapshot.state : 'dispatched';
  upsertSearchAttributes(searchAttributesOf(snapshot, state));
  const { lastAnswer, phase } = newestAttempt(snapshot);
  // The last answer of an attempt that has ended is not what ended it.
  const what = phase === 'unknown' || phase === 'in_flight' ? (lastAnswer ?? phase) : phase;
  note(supervision, `${state}: ${ahead === undefined ? what : 'the send is handed out'}`);
}

export function explain(supervision: Supervision, text: string): void {
  supervision.explanation = text;
  setCurrentDetails(text);
}

export function note(supervision: Supervision, what: string): void {
  // Workflow time: it is the same at every replay.
  supervision.timeline.push({ at: new Date().toISOString(), what });
}
