// Control
// -------
// What moves the provider from outside. None of it is part of the contract that a client of the provider knows.

import type { Hono } from 'hono';
import { z } from 'zod';
import type { Job } from '../book/jobs-state.js';
import type { Execution } from '../book/state.js';
import { awaitsRelease } from '../executions.js';
import { jobAwaitsRelease } from '../jobs.js';
import { readRule } from '../script/read-script.js';
import { amountSchema, lookupSchema } from '../script/switches.js';
import { stateReceipt } from '../statements.js';
import type { World } from '../world.js';
import { addOrder, noWork, obey } from './control-order.js';
import { deliver, errorReply, jsonReply } from './delivery.js';
import type { Reply, SimulatorEnv } from './delivery.js';
import { addJobOrders, correctJob, finishJob } from './jobs/job-orders.js';

const key = z.string().min(1);
const tokenCount = z.int().nonnegative();

const releaseSchema = z.strictObject({ key: key.optional(), all: z.literal(true).optional() });
const clockSchema = z.strictObject({ advanceMs: z.int().nonnegative() });
const correctSchema = z.strictObject({ key, charge: amountSchema });
const lookupOrderSchema = z.strictObject({
  key,
  lookup: lookupSchema.optional(),
  charge_lookup: lookupSchema.optional(),
});
const usageSchema = z.strictObject({
  prompt_tokens: tokenCount.optional(),
  completion_tokens: tokenCount.optional(),
});
const finishSchema = z.strictObject({
  key,
  usage: usageSchema.optional(),
  charge: amountSchema.optional(),
});

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
    obey(context, world, {
      read: readRule,
      act: (rule) => jsonReply(201, behaviours.add(rule)),
    }),
  );
  addOrder(app, world, { path: '/control/release', schema: releaseSchema, act: release });
  addOrder(app, world, { path: '/control/clock', schema: clockSchema, act: advanceClock });
  addOrder(app, world, { path: '/control/finish', schema: finishSchema, act: finish });
  addOrder(app, world, { path: '/control/correct', schema: correctSchema, act: correct });
  addOrder(app, world, { path: '/control/lookup', schema: lookupOrderSchema, act: changeLookup });
  addJobOrders(app, world);
}

function release({ key, all }: z.infer<typeof releaseSchema>, world: World): Reply {
  if ((key === undefined) === (all === undefined)) {
    return errorReply(400, { message: 'key: say this or "all": true.' });
  }
  const isMeant = (work: Execution | Job): boolean => all === true || work.key === key;
  const { executions, jobs } = world.book.state;
  const released = [...executions.values()].filter((each) => isMeant(each) && awaitsRelease(each));
  const releasedJobs = [...jobs.values()].filter((each) => isMeant(each) && jobAwaitsRelease(each));
  for (const execution of released) world.executions.release(execution);
  for (const job of releasedJobs) world.jobs.release(job);
  return jsonReply(200, { released: [...released, ...releasedJobs].map(({ id }) => id) });
}

function advanceClock({ advanceMs }: z.infer<typeof clockSchema>, world: World): Reply {
  const { clock } = world.book;
  world.book.record({ event: 'clock', offsetMs: clock.offsetMs() + advanceMs });
  clock.advance(advanceMs);
  return jsonReply(200, { at: new Date(clock.nowMs()).toISOString(), offsetMs: clock.offsetMs() });
}

function finish(order: z.infer<typeof finishSchema>, world: World): Reply {
  const { execution, job } = lastOf(world, order.key);
  if (job !== undefined) return finishJob(world, job, order);
  if (execution === undefined) return noWork(order.key);
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
  const { execution, job } = lastOf(world, order.key);
  if (job !== undefined) return correctJob(world, job, order.charge);
  if (execution === undefined) return noWork(order.key);
  if (execution.chargedAt === null) {
    return errorReply(409, { message: `"${order.key}" is not charged yet.` });
  }
  world.executions.correct(execution, order.charge);
  return jsonReply(200, stateReceipt(execution));
}

function changeLookup(order: z.infer<typeof lookupOrderSchema>, world: World): Reply {
  const { key: wanted, ...lookups } = order;
  const { execution, job } = lastOf(world, wanted);
  const work = job ?? execution;
  if (work === undefined) return noWork(wanted);
  if (Object.keys(lookups).length === 0) {
    return errorReply(400, { message: 'lookup: say this or "charge_lookup".' });
  }
  world.book.record({ event: 'lookup_switches', id: work.id, ...lookups });
  return jsonReply(200, { id: work.id, ...lookups });
}

type Last = { readonly execution?: Execution | undefined; readonly job?: Job | undefined };

/** A key can have started both kinds of work, each in its own place: the later one is meant. */
function lastOf({ book }: World, key: string): Last {
  const execution = book.state.executionsByKey.get(key)?.at(-1);
  const job = book.state.jobsByKey.get(key)?.at(-1);
  return (job?.seq ?? 0) > (execution?.seq ?? 0) ? { job } : { execution };
}
