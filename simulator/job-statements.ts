// Statements of a job
// -------------------
// What a job says of itself. How it stands and what it has cost are two questions, and each may be bent.

import type { JobState } from './book/entries.js';
import type { Job, JobQuestion } from './book/jobs-state.js';
import type { LookupSwitches, Switches } from './script/switches.js';

type Usage = { readonly ticks: number };
type Amount = { readonly amount: string; readonly unit: 'credit' };

export type JobCharge = {
  readonly final: boolean;
  readonly usage?: Usage | null;
  readonly charge?: Amount | null;
};

/** A question for the charge follows the script of the one for the status where it has none of its own. */
export function lookupOf(switches: Switches, question: JobQuestion): LookupSwitches | undefined {
  return question === 'charge' ? (switches.charge_lookup ?? switches.lookup) : switches.lookup;
}

/** How it stands, as far as such a question is let see it. */
export function seenState(job: Job, question: JobQuestion): JobState {
  const isHidden =
    !job.released && lookupOf(job.switches, question)?.running_until_released === true;
  return isHidden ? 'running' : job.state;
}

/** What the next question for the status is told. */
export function nextShownState(job: Job): JobState {
  return job.switches.shows?.[job.answered.status] ?? seenState(job, 'status');
}

export function stateJob(job: Job, status: JobState): Record<string, unknown> {
  const { id, key, cancel, ticks } = job;
  return { id, key, status, cancel, ticks };
}

/** The answer to its create, and to a repeat of that. */
export function stateStart(job: Job): Record<string, unknown> {
  const id = job.statedId === null ? {} : { id: job.statedId };
  return { ...id, key: job.key, status: seenState(job, 'status') };
}

/** While it runs this is a lower bound. It is final when all that it will ever show is shown, and that is something. */
export function stateJobCharge(job: Job): JobCharge {
  const usage = usageOf(job);
  const charge = chargeOf(job);
  const says = [usage, charge].some((part) => part !== undefined && part !== null);
  const isWaiting = usage === 'later' || charge === 'later';
  return {
    final: seenState(job, 'charge') !== 'running' && says && !isWaiting,
    ...(usage === undefined || usage === 'later' ? {} : { usage }),
    ...(charge === undefined || charge === 'later' ? {} : { charge }),
  };
}

function isLaterYet({ released, shownCount, switches }: Job): boolean {
  return released || (switches.later_lookups !== undefined && shownCount > switches.later_lookups);
}

function usageOf(job: Job): Usage | null | 'later' | undefined {
  const { ticks } = job;
  switch (job.switches.usage) {
    case undefined:
    case 'exact':
      return { ticks };
    case 'missing':
      return undefined;
    case 'null':
      return null;
    case 'zero':
      return { ticks: 0 };
    case 'inconsistent':
      return { ticks: ticks + 7 };
    case 'negative':
      return { ticks: -ticks };
    case 'later':
      return isLaterYet(job) ? { ticks } : 'later';
  }
}

function chargeOf(job: Job): Amount | null | 'later' | undefined {
  const { usage, charge_field: field } = job.switches;
  const form = field ?? (usage === 'later' ? 'later' : 'present');
  if (form === 'absent') return undefined;
  if (form === 'null') return null;
  if (form === 'later' && !isLaterYet(job)) return 'later';
  return { amount: job.charged, unit: 'credit' };
}
