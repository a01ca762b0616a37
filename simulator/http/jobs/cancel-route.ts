// POST /v1/jobs/:id/cancel
// ------------------------
// 1. A cancel, and what it does to the job, are booked before it is answered: a lost answer loses nothing else.
// 2. What the provider says of a cancel is one thing and what it does another; a script may set them apart.

import type { Job } from '../../book/jobs-state.js';
import type { CancelSwitches } from '../../script/switches.js';
import type { World } from '../../world.js';
import { deliver, dropConnection, errorReply, jsonReply, staySilent } from '../delivery.js';
import type { Reply, SimulatorContext } from '../delivery.js';
import type { ErrorDetail } from '../error-form.js';
import { hasCredential } from '../request-head.js';
import { readHeaderSwitches } from '../visit.js';
import { OUTAGE } from './outage.js';

type Refused = ErrorDetail & {
  readonly kind: 'refused';
  readonly name: string;
  readonly status: number;
};

type Taken = {
  readonly kind: 'taken';
  readonly name: 'stopped' | 'acknowledged' | 'drop';
  readonly job: Job;
  readonly endsAfterTicks: number | 'never';
};

type Decision = Refused | Taken | { readonly kind: 'hang'; readonly name: 'hang' };

export function cancelJob(
  context: SimulatorContext,
  world: World,
  id: string,
): Response | Promise<Response> {
  const { book, jobs } = world;
  const job = book.state.jobs.get(id);
  const own = readHeaderSwitches(context);
  if (own.status === 'unreadable') return deliver(context, book, errorReply(400, own));
  const decision = decideCancel(context, world, {
    job,
    cancel: own.value?.cancel ?? job?.switches.cancel ?? {},
  });
  jobs.cancel({
    key: job?.key ?? null,
    job,
    answer: decision.name,
    endsAfterTicks: decision.kind === 'taken' ? decision.endsAfterTicks : undefined,
  });
  if (decision.kind === 'hang') return staySilent(context);
  if (decision.name === 'drop') return dropConnection(context, 'close');
  return deliver(context, book, replyOf(decision));
}

type Wish = { readonly job: Job | undefined; readonly cancel: CancelSwitches };

function decideCancel(context: SimulatorContext, { book }: World, wish: Wish): Decision {
  const { job, cancel } = wish;
  if (book.state.jobsAreOut) return { ...OUTAGE, name: 'status_503' };
  if (!hasCredential(context))
    return refused('status_401', 401, { message: 'No API key was sent.' });
  if (job === undefined) return refused('not_found', 404, { message: 'There is no such job.' });
  if (cancel.status !== undefined) {
    const message = `The cancel failed with ${cancel.status}.`;
    return refused(`status_${cancel.status}`, cancel.status, { message });
  }
  return decideByScript(job, cancel);
}

function decideByScript(job: Job, cancel: CancelSwitches): Decision {
  const { answer = 'acknowledged', honoured_after_ticks: after = 0, lies } = cancel;
  if (answer === 'hang') return { kind: 'hang', name: 'hang' };
  if (answer === 'unsupported') {
    const message = 'Jobs cannot be cancelled here.';
    return refused('unsupported', 405, { message, code: 'cancel_unsupported' });
  }
  if (job.state !== 'running') {
    const detail = { message: 'The job has ended.', code: 'already_ended', type: CONFLICT };
    return refused('already_ended', 409, detail);
  }
  if (answer === 'refused') {
    const message = 'The job cannot be cancelled any more.';
    return refused('refused', 409, { message, code: 'not_cancellable', type: CONFLICT });
  }
  return { kind: 'taken', name: answer, job, endsAfterTicks: lies === true ? 'never' : after };
}

const CONFLICT = 'conflict_error';

function refused(name: string, status: number, detail: ErrorDetail): Refused {
  return { kind: 'refused', name, status, ...detail };
}

function replyOf(decision: Refused | Taken): Reply {
  if (decision.kind === 'refused') return errorReply(decision.status, decision);
  const { id } = decision.job;
  return decision.name === 'stopped'
    ? jsonReply(200, { id, status: 'cancelled' })
    : jsonReply(202, { id, status: 'running', cancel: 'requested' });
}
