// POST /v1/chat/completions
// -------------------------
// 1. Between looking for a key and starting work under it nothing is awaited: of two requests that come at one
//    instant under one key, one starts work.

import { callPriceOf } from '../book/prices.js';
import type { Execution } from '../book/state.js';
import type { Switches } from '../script/switches.js';
import { isShownRunning } from '../statements.js';
import type { World } from '../world.js';
import { answerOf } from './answers.js';
import type { AnswerOptions } from './answers.js';
import { readChatRequest } from './chat-request.js';
import type { ChatRequest } from './chat-request.js';
import { deliver, dropConnection, staySilent, whenClientIsGone } from './delivery.js';
import type { SimulatorContext } from './delivery.js';
import { modelOf } from './request-body.js';
import { openVisit, receive, refuse, requestEntryOf } from './visit.js';
import type { Arrived, Visit } from './visit.js';

export function answerChat(context: SimulatorContext, world: World): Promise<Response> {
  return receive(openVisit(context, world), decide);
}

function decide(visit: Visit, { body, switches }: Arrived): Response | Promise<Response> {
  const { world, key, seq, receivedRealAt } = visit;
  const read = readChatRequest(body);
  if (read.status === 'invalid') {
    const request = { model: modelOf(body) };
    return refuse(visit, { status: 400, reason: 'invalid', request, ...read.detail });
  }
  const { request } = read;
  const price = callPriceOf(world.prices, request.model);
  if (price === undefined) {
    const message = `The model "${request.model}" does not exist.`;
    const reason = 'unknown_model';
    return refuse(visit, { status: 404, reason, message, param: 'model', request });
  }
  const earlier = switches.honours_key === false ? undefined : findEarlier(world, key);
  if (earlier !== undefined) return repeat(visit, { execution: earlier, request, switches });
  const order = { seq, receivedRealAt, key, price, switches, ...request };
  const execution = world.executions.start(order);
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
