import type { ReportEntry } from '../book/entries.js';
import type { Execution } from '../book/state.js';
import { stateChunks, stateCompletion, stateMoney } from '../statements.js';
import type { Stated } from '../statements.js';
import type { ChatRequest } from './chat-request.js';
import { errorReply, jsonReply } from './delivery.js';
import type { BodyForm, Reply } from './delivery.js';
import { errorForm } from './error-form.js';

export type AnswerOptions = {
  readonly seq: number;
  readonly request: ChatRequest;
  readonly via: 'answer' | 'replay';
  readonly form: BodyForm | undefined;
};

/** The answer of an execution that has ended, to its own request or to a repeat of it. */
export function answerOf(execution: Execution, options: AnswerOptions): Reply {
  const { seq, via, form, request } = options;
  const failure = failureOf(execution, via);
  const reply =
    failure === undefined
      ? composeAnswer(execution, request)
      : composeFailure(execution, request, failure);
  const says = failure === undefined && (!request.stream || request.includeUsage);
  return {
    ...reply,
    form,
    headers: {
      ...reply.headers,
      ...(via === 'replay' ? { 'idempotency-replayed': 'true' } : {}),
    },
    booked: {
      always: { event: 'answered', seq, status: reply.status },
      ...(says ? { whole: reportOf(execution, { seq, via }) } : {}),
    },
  };
}

export function reportOf(
  execution: Execution,
  { seq, via }: Pick<ReportEntry, 'seq' | 'via'>,
): ReportEntry {
  const { id, key, state } = execution;
  const { usage, charge }: Stated = stateMoney(execution);
  return {
    event: 'report',
    seq,
    via,
    key,
    id,
    status: state,
    usage: usage ?? null,
    charge: charge?.amount ?? null,
    final: true,
  };
}

/** A repeat is answered with the failure too, unless the execution is said to have completed. */
function failureOf(execution: Execution, via: AnswerOptions['via']): number | undefined {
  const { fail_after_accepting: failure } = execution.switches;
  if (execution.state === 'failed') return failure ?? 500;
  return via === 'answer' ? failure : undefined;
}

function composeAnswer(execution: Execution, request: ChatRequest): Reply {
  if (!request.stream) return jsonReply(200, stateCompletion(execution));
  return streamReply([...stateChunks(execution, request.includeUsage), '[DONE]']);
}

function composeFailure(execution: Execution, request: ChatRequest, status: number): Reply {
  const message = 'The work was started and its answer was lost.';
  if (!request.stream || execution.switches.fail_at !== 'first_chunk') {
    return errorReply(status, { message });
  }
  const [first = {}] = stateChunks(execution, request.includeUsage);
  return streamReply([first, errorForm(status, { message })]);
}

function streamReply(chunks: readonly (object | string)[]): Reply {
  const lines = chunks.map((chunk) => (typeof chunk === 'string' ? chunk : JSON.stringify(chunk)));
  return {
    status: 200,
    body: lines.map((line) => `data: ${line}\n\n`).join(''),
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' },
  };
}
