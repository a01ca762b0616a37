// Supervision
// -----------
// What one supervisor knows and shows, and the handlers that people and callers reach it by.
// Handlers come first, are total, and shield whatever they wait for: one that throws stalls the
// workflow, and one that waits unshielded ends it when a cancel arrives.

import {
  CancellationScope,
  condition,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { LlmCallInput } from '../domain/call-input.js';
import { answerStatusOf, type LlmCallResult } from '../domain/call-result.js';
import { explainOperation } from '../domain/explain.js';
import { problemOfId } from '../domain/identity.js';
import { newestAttempt } from '../domain/next-step.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import {
  type AdmitVerdict,
  type AnswerKnown,
  awaitAnswerUpdate,
  explainQuery,
  lookUpNowSignal,
  type TimelineEntry,
  timelineQuery,
} from './messages.js';
import { searchAttributesOf } from './search-attributes.js';

export interface Supervision {
  readonly input: LlmCallInput;
  readonly operationId: string;
  readonly workflowId: string;
  readonly timeline: TimelineEntry[];
  /** Asks that arrived by update, in order; the running one first. */
  readonly asks: string[];
  readonly verdicts: Map<string, AdmitVerdict>;
  wakeCount: number;
  cancelRequested: boolean;
  cancelStored: boolean;
  /** The run is about to continue as new: whoever waits hears so and asks the next run. */
  isHandingOver: boolean;
  snapshot: OperationSnapshot | undefined;
  shownState: string | undefined;
  result: LlmCallResult | undefined;
  explanation: string;
}

export function listen(supervision: Supervision): void {
  CancellationScope.current().cancelRequested.catch(() => {
    supervision.cancelRequested = true;
    supervision.wakeCount += 1;
    note(supervision, 'a stop was asked for, by cancelling the workflow');
  });
  setHandler(
    lookUpNowSignal,
    () => {
      supervision.wakeCount += 1;
    },
    { description: 'Ask the provider again now' },
  );
  setHandler(
    awaitAnswerUpdate,
    () =>
      CancellationScope.nonCancellable(async () => {
        await condition(() => answerOf(supervision) !== undefined);
        return answerOf(supervision) as AnswerKnown;
      }),
    { description: 'Waits for the answer; ending the wait cancels nothing' },
  );
  setHandler(explainQuery, () => supervision.explanation, {
    description: 'Where this operation stands, in plain English',
  });
  setHandler(timelineQuery, () => supervision.timeline, {
    description: 'What happened so far, with times',
  });
}

export function askIdOf(request: unknown): string | undefined {
  if (typeof request !== 'object' || request === null) return undefined;
  const { askId } = request as { askId?: unknown };
  return typeof askId === 'string' && problemOfId(askId) === undefined ? askId : undefined;
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

function answerOf(supervision: Supervision): AnswerKnown | undefined {
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

/** Takes a snapshot in, and shows it where people look; one upsert a change of state. */
export function see(supervision: Supervision, snapshot: OperationSnapshot, shown?: string): void {
  const state = shown ?? snapshot.state;
  supervision.snapshot = snapshot;
  explain(supervision, explainOperation(snapshot));
  if (state === supervision.shownState) return;
  supervision.shownState = state;
  upsertSearchAttributes(searchAttributesOf(snapshot, state, supervision.input.taskId));
  const { lastAnswer, phase } = newestAttempt(snapshot);
  // Shown before the ledger knows: the send is handed out, and its attempt still stands as not sent.
  const isAhead = shown !== undefined && phase === 'not_sent';
  // The last answer of an attempt that has ended is not what ended it.
  const what = phase === 'unknown' || phase === 'in_flight' ? (lastAnswer ?? phase) : phase;
  note(supervision, `${state}: ${isAhead ? 'the send is handed out' : what}`);
}

export function explain(supervision: Supervision, text: string): void {
  supervision.explanation = text;
  setCurrentDetails(text);
}

export function note(supervision: Supervision, what: string): void {
  // Workflow time: it is the same at every replay.
  supervision.timeline.push({ at: new Date().toISOString(), what });
}
