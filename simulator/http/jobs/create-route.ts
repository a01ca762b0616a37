// POST /v1/jobs
// -------------
// 1. Between looking for a key and starting a job under it nothing is awaited: of two requests that come at one
//    instant under one key, one starts a job.
// 2. A repeat is answered at once with how the job stands, be the first answer lost, late or an error.

import type { Entry } from '../../book/entries.js';
import type { Job } from '../../book/jobs-state.js';
import { tickRateOf } from '../../book/prices.js';
import { stateStart } from '../../job-statements.js';
import type { Switches } from '../../script/switches.js';
import type { World } from '../../world.js';
import {
  deliver,
  dropConnection,
  errorReply,
  jsonReply,
  staySilent,
  whenClientIsGone,
} from '../delivery.js';
import type { Reply, SimulatorContext } from '../delivery.js';
import { modelOf } from '../request-body.js';
import { openVisit, receive, refuse, requestEntryOf } from '../visit.js';
import type { Arrived, Visit } from '../visit.js';
import { readJobRequest } from './job-request.js';
import type { JobRequest } from './job-request.js';
import { OUTAGE } from './outage.js';

export function createJob(context: SimulatorContext, world: World): Response | Promise<Response> {
  const visit = openVisit(context, world);
  if (world.book.state.jobsAreOut) return refuse(visit, { reason: 'outage', ...OUTAGE });
  return receive(visit, decide);
}

function decide(visit: Visit, { body, switches }: Arrived): Response | Promise<Response> {
  const { world, key, seq, receivedRealAt } = visit;
  const read = readJobRequest(body);
  if (read.status === 'invalid') {
    const request = { model: modelOf(body) };
    return refuse(visit, { status: 400, reason: 'invalid', request, ...read.detail });
  }
  const { request } = read;
  const rate = tickRateOf(world.prices, request.model);
  if (rate === undefined) {
    const message = `The model "${request.model}" does not exist, or takes no jobs.`;
    const reason = 'unknown_model';
    return refuse(visit, { status: 404, reason, message, param: 'model', request });
  }
  const earlier = switches.honours_key === false ? undefined : findEarlier(world, key);
  if (earlier !== undefined) return repeat(visit, { job: earlier, request, switches });
  const job = world.jobs.start({ seq, receivedRealAt, key, rate, switches, ...request });
  return hand(visit, { job, switches, via: 'answer' });
}

function findEarlier({ book }: World, key: string | null): Job | undefined {
  return key === null ? undefined : book.state.jobsByKey.get(key)?.[0];
}

type Repeat = { readonly job: Job; readonly request: JobRequest; readonly switches: Switches };

function repeat(visit: Visit, { job, request, switches }: Repeat): Response | Promise<Response> {
  if (job.digest !== request.digest) {
    const message = 'The key was used before with another body.';
    const known = { request, switches, code: 'idempotency_key' };
    return refuse(visit, { status: 422, reason: 'key_reused', message, ...known });
  }
  const { id, executionNo, model, limitTicks } = job;
  const known = { id, executionNo, model, limitTicks };
  visit.world.book.record({ ...requestEntryOf(visit, 'replayed'), ...known });
  return hand(visit, { job, switches, via: 'replay' });
}

type Handing = {
  readonly job: Job;
  readonly switches: Switches;
  readonly via: 'answer' | 'replay';
};

async function hand(visit: Visit, { job, switches, via }: Handing): Promise<Response> {
  const { context, world, seq } = visit;
  if (switches.drop === 'after_accepting') return dropConnection(context, 'close');
  if (switches.answer === 'never') return staySilent(context);
  if (via === 'answer') {
    await Promise.race([world.jobs.whenAnswerable(job), whenClientIsGone(context)]);
  }
  const reply = via === 'answer' ? firstReply(job) : repeatReply(job);
  const always: Entry = { event: 'answered', seq, status: reply.status };
  return deliver(context, world.book, { ...reply, form: switches.body, booked: { always } });
}

function firstReply(job: Job): Reply {
  const { fail_after_accepting: failure } = job.switches;
  if (failure === undefined) return jsonReply(202, stateStart(job));
  return errorReply(failure, { message: 'The job was started and the answer was lost.' });
}

function repeatReply(job: Job): Reply {
  return { ...jsonReply(200, stateStart(job)), headers: { 'idempotency-replayed': 'true' } };
}
