// Handlers
// --------
// How people and callers reach a supervisor. Handlers come first, are total, and shield whatever they
// wait for: one that throws stalls the workflow, and one that waits unshielded ends it when a cancel
// arrives. Each wish is there twice: as a signal, which needs no worker to be accepted, and as an
// update, which is checked and answered. Both end in the same function.

import { ApplicationFailure, CancellationScope, condition, setHandler } from '@temporalio/workflow';
import { problemOfId } from '../domain/identity.js';
import { describeProblems } from '../domain/input-fields.js';
import { readMessage } from '../domain/operator-message.js';
import { reportStop } from '../domain/stop.js';
import {
  type AdmitVerdict,
  admitUpdate,
  type AnswerKnown,
  awaitAnswerUpdate,
  type CancelAnswered,
  explainQuery,
  lookUpNowSignal,
  lookUpNowUpdate,
  requestCancelSignal,
  requestCancelUpdate,
  resultQuery,
  timelineQuery,
} from './messages.js';
import { answerOther, otherAskedOf } from './other-terms.js';
import { answerOf, note, type Supervision, verdictOf } from './supervision.js';

export function listen(supervision: Supervision): void {
  CancellationScope.current().cancelRequested.catch(() => {
    supervision.isWorkflowCancelled = true;
    wishForStop(supervision, { by: 'temporal cancel' });
  });
  answerAskings(supervision);
  takeWishes(supervision);
  setHandler(
    awaitAnswerUpdate,
    () =>
      CancellationScope.nonCancellable(async () => {
        await condition(() => answerOf(supervision) !== undefined || supervision.isOver);
        const answer: AnswerKnown | undefined = answerOf(supervision);
        if (answer !== undefined) return answer;
        throw ApplicationFailure.nonRetryable(supervision.explanation, 'INVALID_INPUT');
      }),
    { description: 'Waits for the answer; ending the wait cancels nothing' },
  );
  setHandler(explainQuery, () => supervision.explanation, {
    description: 'Where this operation stands, in plain English',
  });
  setHandler(resultQuery, () => supervision.result ?? null, {
    description: 'How it ended; nothing while it has not',
  });
  setHandler(timelineQuery, () => supervision.timeline, {
    description: 'What happened so far, with times',
  });
}

function answerAskings(supervision: Supervision): void {
  setHandler(
    admitUpdate,
    (request: unknown) =>
      CancellationScope.nonCancellable(async (): Promise<AdmitVerdict> => {
        const askId = askIdOf(request) ?? supervision.asks[0] ?? '';
        const other = otherAskedOf(request, supervision);
        if (other !== undefined) return answerOther(supervision, askId, other);
        if (!supervision.asks.includes(askId)) supervision.asks.push(askId);
        await condition(() => verdictOf(supervision, askId) !== undefined || supervision.isOver);
        const verdict: AdmitVerdict | undefined = verdictOf(supervision, askId);
        return verdict ?? { status: 'invalid', message: supervision.explanation };
      }),
    { description: 'Answers whether it was admitted, and why not' },
  );
}

function askIdOf(request: unknown): string | undefined {
  if (typeof request !== 'object' || request === null) return undefined;
  const { askId } = request as { askId?: unknown };
  return typeof askId === 'string' && problemOfId(askId) === undefined ? askId : undefined;
}

function takeWishes(supervision: Supervision): void {
  setHandler(
    requestCancelSignal,
    (raw: unknown) => {
      wishForStop(supervision, readMessage(raw).message);
    },
    { description: 'Ask the provider to stop it: {"by": "you", "reason": "why"}' },
  );
  setHandler(
    lookUpNowSignal,
    () => {
      supervision.wakeCount += 1;
    },
    { description: 'Ask the provider again now: {"by": "you", "reason": "why"}' },
  );
  setHandler(
    requestCancelUpdate,
    (raw: unknown) =>
      CancellationScope.nonCancellable(async (): Promise<CancelAnswered> => {
        const isClosed = supervision.result !== undefined;
        if (!isClosed) wishForStop(supervision, readMessage(raw).message);
        await condition(
          () => supervision.cancelStored || supervision.result !== undefined || supervision.isOver,
        );
        const { snapshot } = supervision;
        const isStored = snapshot !== undefined && snapshot.cancel !== 'none';
        return {
          status: isStored ? 'requested' : 'closed',
          cancel: snapshot?.cancel ?? 'none',
          report: snapshot === undefined ? null : reportStop(snapshot),
        };
      }),
    {
      validator: refuseBadMessage,
      description: 'The same, checked, and answered once it is stored',
    },
  );
  setHandler(
    lookUpNowUpdate,
    () =>
      CancellationScope.nonCancellable(async () => {
        const before = supervision.roundCount;
        supervision.wakeCount += 1;
        await condition(
          () =>
            supervision.roundCount > before ||
            supervision.result !== undefined ||
            supervision.isHandingOver ||
            supervision.isOver,
        );
        return supervision.explanation;
      }),
    {
      validator: refuseBadMessage,
      description: 'The same, checked, and answered with what it brought',
    },
  );
}

/** Every field that is wrong is named. Nothing of a refused update is in the history. */
function refuseBadMessage(raw: unknown): void {
  const { problems } = readMessage(raw);
  if (problems.length > 0) {
    throw ApplicationFailure.nonRetryable(describeProblems(problems), 'INVALID_INPUT');
  }
}

/** The first wish counts; the same or another one later changes nothing. */
function wishForStop(supervision: Supervision, wish: NonNullable<Supervision['wish']>): void {
  if (supervision.wish !== undefined) return;
  supervision.wish = wish;
  supervision.wakeCount += 1;
  note(supervision, `a stop was asked for, by ${wish.by}`);
}
