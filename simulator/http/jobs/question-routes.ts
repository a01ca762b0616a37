// How a job stands, and what it has cost
// --------------------------------------
// Two questions, each with a route by id and one by key. The status says nothing of money.
//
// 1. Each question is booked before it is answered, with what it will say.

import type { Book } from '../../book/book.js';
import type { Job, JobQuestion } from '../../book/jobs-state.js';
import {
  lookupOf,
  nextShownState,
  seenState,
  stateJob,
  stateJobCharge,
} from '../../job-statements.js';
import type { LookupSwitches, Switches } from '../../script/switches.js';
import type { World } from '../../world.js';
import { deliver, errorReply, jsonReply, staySilent } from '../delivery.js';
import type { Reply, SimulatorContext } from '../delivery.js';
import { decideLookup, nameVerdict, NO_CREDENTIAL } from '../lookup-script.js';
import type { Verdict } from '../lookup-script.js';
import type { Wanted } from '../receipt-route.js';
import { hasCredential } from '../request-head.js';
import { readHeaderSwitches } from '../visit.js';
import { OUTAGE } from './outage.js';

export type Asked = { readonly question: JobQuestion; readonly wanted: Wanted };

export function answerJobQuestion(
  context: SimulatorContext,
  world: World,
  { question, wanted }: Asked,
): Response | Promise<Response> {
  const { book } = world;
  const found = findJob(book, wanted);
  const own = readHeaderSwitches(context);
  if (own.status === 'unreadable') return deliver(context, book, errorReply(400, own));
  const lookup = lookupOf(own.value ?? {}, question) ?? scriptedLookup(book, question, found);
  const verdict = decideQuestion(context, book, { question, lookup, job: found.job });
  // Taken before the question is booked, since each question uses one of them up.
  const status = found.job === undefined ? 'running' : nextShownState(found.job);
  const seen = (job: Job) => (question === 'status' ? status : seenState(job, question));
  const seq = book.state.lookups.length + 1;
  const answer = nameVerdict(verdict, seen);
  const id = found.job?.id ?? null;
  book.record({ event: 'lookup', seq, question, key: found.key, id, answer });
  if (verdict.kind === 'hang') return staySilent(context);
  if (verdict.kind === 'refused') {
    const reply = errorReply(verdict.status, verdict, lookup.retry_after_s);
    return deliver(context, book, { ...reply, form: lookup.body });
  }
  const job = verdict.found;
  const reply =
    question === 'status' ? jsonReply(200, stateJob(job, status)) : chargeReply(job, seq);
  return deliver(context, book, { ...reply, form: lookup.body });
}

type Found = { readonly job: Job | undefined; readonly key: string | null };

/** Several jobs under one key: the last one is found. */
function findJob({ state }: Book, wanted: Wanted): Found {
  if ('key' in wanted) return { job: state.jobsByKey.get(wanted.key)?.at(-1), key: wanted.key };
  const job = state.jobs.get(wanted.id);
  return { job, key: job?.key ?? null };
}

function scriptedLookup(book: Book, question: JobQuestion, { job, key }: Found): LookupSwitches {
  if (job !== undefined) return lookupOf(job.switches, question) ?? {};
  const ofKey = key === null ? undefined : book.state.unacceptedLookups.get(key);
  const switches: Switches = {
    lookup: ofKey?.lookup ?? undefined,
    charge_lookup: ofKey?.chargeLookup ?? undefined,
  };
  return lookupOf(switches, question) ?? {};
}

type Scripted = {
  readonly question: JobQuestion;
  readonly lookup: LookupSwitches;
  readonly job: Job | undefined;
};

function decideQuestion(
  context: SimulatorContext,
  book: Book,
  { question, lookup, job }: Scripted,
): Verdict<Job> {
  if (book.state.jobsAreOut) return OUTAGE;
  if (!hasCredential(context)) return NO_CREDENTIAL;
  const askedCount = job?.asked[question] ?? 0;
  return decideLookup(book, { lookup, sought: job, askedCount, noun: 'job' });
}

function chargeReply(job: Job, seq: number): Reply {
  const { id, key } = job;
  const stated = stateJobCharge(job);
  return {
    ...jsonReply(200, { id, key, ...stated }),
    booked: {
      whole: {
        event: 'report',
        seq,
        via: 'lookup',
        key,
        id,
        status: seenState(job, 'charge'),
        usage: stated.usage ?? null,
        charge: stated.charge?.amount ?? null,
        final: stated.final,
      },
    },
  };
}
