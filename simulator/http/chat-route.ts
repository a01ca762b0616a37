// POST /v1/chat/completions
// -------------------------
// 1. 401 and 503 are documented: refused before work, and never charged.
// 2. Between looking for a key and starting work under it nothing is awaited: of two requests that come at one
//    instant under one key, one starts work.
// 3. Every request that arrives gets one entry in the book, whatever becomes of it.

import type { Entry, RequestEntry } from '../book/entries.js';
import type { Execution } from '../book/state.js';
import { readSwitches } from '../script/read-script.js';
import type { Switches } from '../script/switches.js';
import { isShownRunning } from '../statements.js';
import type { World } from '../world.js';
import { answerOf } from './answers.js';
import type { AnswerOptions } from './answers.js';
import { modelOf, readChatRequest } from './chat-request.js';
import type { ChatRequest } from './chat-request.js';
import { deliver, dropConnection, errorReply, staySilent, whenClientIsGone } from './delivery.js';
import type { SimulatorContext } from './delivery.js';
import type { ErrorDetail } from './error-form.js';
import { hasCredential, keyOf } from './request-head.js';

type Visit = {
  readonly context: SimulatorContext;
  readonly world: World;
  readonly seq: number;
  readonly receivedRealAt: string;
  readonly key: string | null;
};

type Refusal = ErrorDetail & {
  readonly status: number;
  readonly reason: string;
  readonly request?: { readonly model: string | null; readonly maxTokens?: number } | undefined;
  readonly switches?: Switches;
};

export async function answerChat(context: SimulatorContext, world: World): Promise<Response> {
  const key = keyOf(context);
  const seq = world.book.nextSeq();
  const visit: Visit = { context, world, seq, receivedRealAt: new Date().toISOString(), key };
  const read = readHeaderSwitches(context);
  if (read.status === 'unreadable') {
    return refuse(visit, { status: 400, reason: 'x-simulate', message: read.message });
  }
  const own = read.value;
  if (own === undefined ? world.behaviours.dropsUnread(key) : own.drop === 'before_reading') {
    return dropUnread(visit, own ?? world.behaviours.take({ key, model: null }), null);
  }
  if (!hasCredential(context)) {
    return refuse(visit, { status: 401, reason: 'no_credential', message: 'No API key was sent.' });
  }
  const body = await readBody(context);
  if (body.status === 'gone') {
    return refuse(visit, {
      status: 400,
      reason: 'client_gone',
      message: 'The body did not arrive.',
    });
  }
  return decide(visit, body.value, own);
}

type HeaderSwitches =
  | { readonly status: 'read'; readonly value: Switches | undefined }
  | { readonly status: 'unreadable'; readonly message: string };

function readHeaderSwitches(context: SimulatorContext): HeaderSwitches {
  const text = context.req.header('x-simulate');
  return text === undefined ? { status: 'read', value: undefined } : readSwitches(text);
}

type Body = { readonly status: 'read'; readonly value: unknown } | { readonly status: 'gone' };

async function readBody(context: SimulatorContext): Promise<Body> {
  let text: string;
  try {
    text = await context.req.text();
  } catch {
    return { status: 'gone' };
  }
  try {
    return { status: 'read', value: JSON.parse(text) as unknown };
  } catch {
    return { status: 'read', value: undefined };
  }
}

function decide(
  visit: Visit,
  body: unknown,
  own: Switches | undefined,
): Response | Promise<Response> {
  const { world, key } = visit;
  const model = modelOf(body);
  const switches = own ?? world.behaviours.take({ key, model });
  if (switches.drop === 'before_reading') return dropUnread(visit, switches, model);
  if (switches.status !== undefined) {
    const message = `Refused before any work with ${switches.status}.`;
    const request = { model };
    return refuse(visit, {
      status: switches.status,
      reason: `status_${switches.status}`,
      message,
      request,
      switches,
    });
  }
  const read = readChatRequest(body);
  if (read.status === 'invalid') {
    return refuse(visit, { status: 400, reason: 'invalid', request: { model }, ...read.detail });
  }
  const { request } = read;
  const price = world.prices.get(request.model);
  if (price === undefined) {
    const message = `The model "${request.model}" does not exist.`;
    return refuse(visit, {
      status: 404,
      reason: 'unknown_model',
      message,
      param: 'model',
      request,
    });
  }
  const earlier = switches.honours_key === false ? undefined : findEarlier(world, key);
  if (earlier !== undefined) return repeat(visit, { execution: earlier, request, switches });
  const { seq, receivedRealAt } = visit;
  const execution = world.executions.start({
    seq,
    receivedRealAt,
    key,
    price,
    switches,
    ...request,
  });
  const options: AnswerOptions = { seq, request, via: 'answer', form: switches.body };
  return hand(visit, { execution, switches, options });
}

function findEarlier({ book }: World, key: string | null): Execution | undefined {
  return key === null ? undefined : book.state.executionsByKey.get(key)?.[0];
}

type Repeat = {
  readonly execution: Execution;
  readonly request: ChatRequest;
  readonly switches: Switches;
};

function repeat(visit: Visit, again: Repeat): Response | Promise<Response> {
  const { execution, request, switches } = again;
  const known = { request, switches, code: 'idempotency_key' };
  if (execution.digest !== request.digest) {
    const message = 'The key was used before with another body.';
    return refuse(visit, { status: 422, reason: 'key_reused', message, ...known });
  }
  if (isShownRunning(execution)) {
    const message = 'The first request with this key is still running.';
    return refuse(visit, { status: 409, reason: 'key_in_use', message, ...known });
  }
  const { id, executionNo, model } = execution;
  const { maxTokens } = request;
  visit.world.book.record({
    ...requestEntryOf(visit, 'replayed'),
    model,
    maxTokens,
    id,
    executionNo,
  });
  const options: AnswerOptions = { seq: visit.seq, request, via: 'replay', form: switches.body };
  return hand(visit, { execution, switches, options });
}

type Handing = {
  readonly execution: Execution;
  readonly switches: Switches;
  readonly options: AnswerOptions;
};

async function hand(visit: Visit, handing: Handing): Promise<Response> {
  const { context, world } = visit;
  const { execution, switches, options } = handing;
  if (switches.drop === 'after_accepting') return dropConnection(context, 'close');
  if (switches.answer === 'never') return staySilent(context);
  await Promise.race([world.executions.whenEnded(execution), whenClientIsGone(context)]);
  return deliver(context, world.book, answerOf(execution, options));
}

function dropUnread(visit: Visit, switches: Switches, model: string | null): Response {
  const { lookup = null } = switches;
  visit.world.book.record({ ...requestEntryOf(visit, 'dropped_before_reading'), model, lookup });
  return dropConnection(visit.context, 'reset');
}

function refuse(visit: Visit, refusal: Refusal): Response {
  const { status, reason, request, switches = {} } = refusal;
  visit.world.book.record({
    ...requestEntryOf(visit, 'refused'),
    reason,
    model: request?.model ?? null,
    maxTokens: request?.maxTokens ?? null,
    lookup: switches.lookup ?? null,
  });
  const always: Entry = { event: 'answered', seq: visit.seq, status };
  const reply = errorReply(status, refusal, switches.retry_after_s);
  return deliver(visit.context, visit.world.book, {
    ...reply,
    form: switches.body,
    booked: { always },
  });
}

function requestEntryOf(visit: Visit, outcome: RequestEntry['outcome']): RequestEntry {
  const { seq, receivedRealAt, key } = visit;
  return {
    event: 'request',
    seq,
    receivedRealAt,
    key,
    model: null,
    maxTokens: null,
    outcome,
    reason: null,
    id: null,
    executionNo: null,
    lookup: null,
  };
}
