// Control
// -------
// What moves the provider from outside. None of it is part of the contract that a client of the provider knows.

import type { Hono } from 'hono';
import { z } from 'zod';
import type { Execution } from '../book/state.js';
import { awaitsRelease } from '../executions.js';
import { readRule, readWith } from '../script/read-script.js';
import type { Read } from '../script/read-script.js';
import { amountSchema, lookupSchema } from '../script/switches.js';
import { stateReceipt } from '../statements.js';
import type { World } from '../world.js';
import { deliver, errorReply, jsonReply } from './delivery.js';
import type { Reply, SimulatorContext, SimulatorEnv } from './delivery.js';

const key = z.string().min(1);
const tokenCount = z.int().nonnegative();

const releaseSchema = z.strictObject({ key: key.optional(), all: z.literal(true).optional() });
const clockSchema = z.strictObject({ advanceMs: z.int().nonnegative() });
const correctSchema = z.strictObject({ key, charge: amountSchema });
const lookupOrderSchema = z.strictObject({ key, lookup: lookupSchema });
const usageSchema = z.strictObject({
  prompt_tokens: tokenCount.optional(),
  completion_tokens: tokenCount.optional(),
});
const finishSchema = z.strictObject({
  key,
  usage: usageSchema.optional(),
  charge: amountSchema.optional(),
});

type Act<T> = (value: T, world: World) => Reply;

export function addControlRoutes(app: Hono<SimulatorEnv>, world: World): void {
  const { behaviours } = world;
  app.get('/control/behaviours', (context) =>
    deliver(context, world.book, jsonReply(200, { behaviours: behaviours.list() })),
  );
  app.delete('/control/behaviours', (context) => {
    behaviours.clear();
    return deliver(context, world.book, jsonReply(200, { behaviours: [] }));
  });
  app.post('/control/behaviours', (context) =>
    act(context, world, {
      read: readRule,
      act: (rule) => jsonReply(201, behaviours.add(rule)),
    }),
  );
  addOrder(app, world, { path: '/control/release', schema: releaseSchema, act: release });
  addOrder(app, world, { path: '/control/clock', schema: clockSchema, act: advanceClock });
  addOrder(app, world, { path: '/control/finish', schema: finishSchema, act: finish });
  addOrder(app, world, { path: '/control/correct', schema: correctSchema, act: correct });
  addOrder(app, world, { path: '/control/lookup', schema: lookupOrderSchema, act: changeLookup });
}

type Order<T> = { readonly path: string; readonly schema: z.ZodType<T>; readonly act: Act<T> };

function addOrder<T>(app: Hono<SimulatorEnv>, world: World, order: Order<T>): void {
  app.post(order.path, (context) =>
    act(context, world, {
      read: (body) => readWith(order.schema, body),
      act: order.act,
    }),
  );
}

type Handling<T> = { readonly read: (body: unknown) => Read<T>; readonly act: Act<T> };

async function act<T>(
  context: SimulatorContext,
  world: World,
  handling: Handling<T>,
): Promise<Response> {
  const text = await context.req.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return deliver(context, world.book, errorReply(400, { message: 'The body is not JSON.' }));
  }
  const read = handling.read(body);
  const reply =
    read.status === 'unreadable' ? errorReply(400, read) : handling.act(read.value, world);
  return deliver(context, world.book, reply);
}

function release({ key, all }: z.infer<typeof releaseSchema>, world: World): Reply {
  if ((key === undefined) === (all === undefined)) {
    return errorReply(400, { message: 'key: say this or "all": true.' });
  }
  const released = [...world.book.state.executions.values()].filter(
    (execution) => (all === true || execution.key === key) && awaitsRelease(execution),
  );
  for (const execution of released) world.executions.release(execution);
  return jsonReply(200, { released: released.map(({ id }) => id) });
}

function advanceClock({ advanceMs }: z.infer<typeof clockSchema>, world: World): Reply {
  const { clock } = world.book;
  world.book.record({ event: 'clock', offsetMs: clock.offsetMs() + advanceMs });
  clock.advance(advanceMs);
  return jsonReply(200, { at: new Date(clock.nowMs()).toISOString(), offsetMs: clock.offsetMs() });
}

function finish(order: z.infer<typeof finishSchema>, world: World): Reply {
  const execution = lastOf(world, order.key);
  if (execution === undefined) return noExecution(order.key);
  if (!awaitsRelease(execution)) {
    return errorReply(409, { message: `The execution of "${order.key}" has ended.` });
  }
  world.executions.finish(execution, {
    promptTokens: order.usage?.prompt_tokens,
    completionTokens: order.usage?.completion_tokens,
    charge: order.charge,
  });
  return jsonReply(200, stateReceipt(execution));
}

function correct(order: z.infer<typeof correctSchema>, world: World): Reply {
  const execution = lastOf(world, order.key);
  if (execution === undefined) return noExecution(order.key);
  if (execution.chargedAt === null) {
    return errorReply(409, { message: `"${order.key}" is not charged yet.` });
  }
  world.executions.correct(execution, order.charge);
  return jsonReply(200, stateReceipt(execution));
}

function changeLookup(order: z.infer<typeof lookupOrderSchema>, world: World): Reply {
  const execution = lastOf(world, order.key);
  if (execution === undefined) return noExecution(order.key);
  world.book.record({ event: 'lookup_switches', id: execution.id, lookup: order.lookup });
  return jsonReply(200, { id: execution.id, lookup: order.lookup });
}

function lastOf({ book }: World, key: string): Execution | undefined {
  return book.state.executionsByKey.get(key)?.at(-1);
}

function noExecution(key: string): Reply {
  return errorReply(404, { message: `Nothing was accepted under "${key}".` });
}
