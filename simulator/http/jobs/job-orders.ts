// What moves jobs from outside: time that passes, how a cancel goes, an early end, an outage.

import type { Hono } from 'hono';
import { z } from 'zod';
import type { Job } from '../../book/jobs-state.js';
import { stateJob, stateJobCharge } from '../../job-statements.js';
import { cancelSchema, findContradictions } from '../../script/switches.js';
import type { World } from '../../world.js';
import { addOrder, noWork } from '../control-order.js';
import { errorReply, jsonReply } from '../delivery.js';
import type { Reply, SimulatorEnv } from '../delivery.js';

const MOST_TICKS = 100_000;

const ticksSchema = z.strictObject({ count: z.int().positive().max(MOST_TICKS) });
const cancelOrderSchema = z.strictObject({ key: z.string().min(1), cancel: cancelSchema });
const outageSchema = z.strictObject({ jobs: z.boolean() });

export function addJobOrders(app: Hono<SimulatorEnv>, world: World): void {
  addOrder(app, world, { path: '/control/ticks', schema: ticksSchema, act: passTicks });
  addOrder(app, world, { path: '/control/cancel', schema: cancelOrderSchema, act: changeCancel });
  addOrder(app, world, { path: '/control/outage', schema: outageSchema, act: setOutage });
}

type FinishOrder = { readonly usage?: unknown; readonly charge?: string | undefined };

export function finishJob(world: World, job: Job, { usage, charge }: FinishOrder): Reply {
  if (usage !== undefined) {
    return errorReply(400, { message: 'usage: that of a job is its ticks, say "charge".' });
  }
  if (job.state !== 'running') {
    return errorReply(409, { message: `The job of "${job.key ?? ''}" has ended.` });
  }
  world.jobs.finish(job, charge);
  return jobReply(job);
}

/** What still runs has no final charge that could have been wrong. */
export function correctJob(world: World, job: Job, charge: string): Reply {
  if (job.state === 'running') {
    return errorReply(409, { message: `The job of "${job.key ?? ''}" is still running.` });
  }
  world.jobs.correct(job, charge);
  return jobReply(job);
}

function passTicks({ count }: z.infer<typeof ticksSchema>, { book, jobs }: World): Reply {
  jobs.tick(count);
  const { jobs: all, worldTicks } = book.state;
  const running = [...all.values()].filter((job) => job.state === 'running');
  return jsonReply(200, { tick: worldTicks, running: running.map(({ id }) => id) });
}

function changeCancel(order: z.infer<typeof cancelOrderSchema>, { book }: World): Reply {
  const { key, cancel } = order;
  const contradictions = findContradictions({ cancel });
  if (contradictions.length > 0) return errorReply(400, { message: contradictions.join(' ') });
  const job = book.state.jobsByKey.get(key)?.at(-1);
  if (job === undefined) return noWork(key);
  book.record({ event: 'cancel_switches', id: job.id, cancel });
  return jsonReply(200, { id: job.id, cancel });
}

function setOutage({ jobs }: z.infer<typeof outageSchema>, { book }: World): Reply {
  book.record({ event: 'outage', jobs });
  return jsonReply(200, { jobs });
}

function jobReply(job: Job): Reply {
  return jsonReply(200, { ...stateJob(job, job.state), ...stateJobCharge(job) });
}
