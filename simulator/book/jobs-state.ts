// The jobs in the book
// --------------------
// The part of the book's state that is about jobs, and how their own entries change it.

import type {
  CancelEntry,
  ChargeEntry,
  JobEndEntry,
  JobEntry,
  JobsEntry,
  JobState,
  LookupEntry,
  Stamp,
  StampedEntry,
} from './entries.js';
import { chargeWork, freshWork } from './work.js';
import type { Work } from './work.js';

export type Job = Omit<JobEntry, 'event' | keyof Work> &
  Work & {
    state: JobState;
    ticks: number;
    cancel: 'none' | 'requested';
    /** It ends when it has had so many ticks. */
    cancelDueTicks: number | null;
    /** The questions of each kind, and those of them that were answered with something. */
    readonly asked: Record<JobQuestion, number>;
    readonly answered: Record<JobQuestion, number>;
    /** The questions for its charge that were answered after it had ended. */
    shownCount: number;
  };

export type JobQuestion = 'status' | 'charge';

export type JobsState = {
  readonly jobs: Map<string, Job>;
  readonly jobsByKey: Map<string | null, Job[]>;
  readonly cancels: (CancelEntry & Stamp)[];
  /** How many ticks have passed in this world. */
  worldTicks: number;
  jobsAreOut: boolean;
};

export function createJobsState(): JobsState {
  return {
    jobs: new Map(),
    jobsByKey: new Map(),
    cancels: [],
    worldTicks: 0,
    jobsAreOut: false,
  };
}

export function jobOf(state: JobsState, id: string): Job {
  const job = state.jobs.get(id);
  if (job === undefined) throw new RangeError(`The book has no job ${id}.`);
  return job;
}

const ownEvents: Readonly<Record<JobsEntry['event'], true>> = {
  job: true,
  ticks: true,
  job_end: true,
  cancel: true,
  cancel_switches: true,
  outage: true,
};

export function isJobsEntry(entry: StampedEntry): entry is Stamp & JobsEntry {
  return entry.event in ownEvents;
}

export function applyJobsEntry(state: JobsState, entry: JobsEntry & Stamp): void {
  switch (entry.event) {
    case 'job':
      applyJob(state, entry);
      return;
    case 'ticks':
      state.worldTicks = entry.worldTicks;
      for (const id of entry.running) jobOf(state, id).ticks += 1;
      return;
    case 'job_end':
      applyEnd(jobOf(state, entry.id), entry);
      return;
    case 'cancel':
      applyCancel(state, entry);
      return;
    case 'cancel_switches': {
      const job = jobOf(state, entry.id);
      job.switches = { ...job.switches, cancel: entry.cancel };
      return;
    }
    case 'outage':
      state.jobsAreOut = entry.jobs;
  }
}

function applyJob(state: JobsState, entry: JobEntry & Stamp): void {
  const job: Job = {
    ...entry,
    ...freshWork(entry.at),
    state: 'running',
    ticks: 0,
    cancel: 'none',
    cancelDueTicks: null,
    asked: { status: 0, charge: 0 },
    answered: { status: 0, charge: 0 },
    shownCount: 0,
  };
  state.jobs.set(entry.id, job);
  state.jobsByKey.set(entry.key, [...(state.jobsByKey.get(entry.key) ?? []), job]);
}

function applyEnd(job: Job, entry: JobEndEntry): void {
  job.state = entry.state;
  job.bill = job.charged;
}

/** While it runs its bill is a bound; what was corrected afterwards is what it came to. */
export function chargeJob(job: Job, entry: ChargeEntry & Stamp): void {
  chargeWork(job, entry);
  if (job.state !== 'running') job.bill = entry.total;
}

function applyCancel(state: JobsState, entry: CancelEntry & Stamp): void {
  state.cancels.push(entry);
  if (entry.id === null || !entry.isTaken) return;
  const job = jobOf(state, entry.id);
  job.cancel = 'requested';
  if (entry.dueTicks === null) return;
  job.cancelDueTicks = Math.min(entry.dueTicks, job.cancelDueTicks ?? entry.dueTicks);
}

const ANSWERED = new Set<string>(['running', 'completed', 'cancelled', 'failed']);

export function countQuestion(job: Job, { question, answer }: LookupEntry): void {
  if (question === 'receipt') return;
  job.asked[question] += 1;
  if (!ANSWERED.has(answer)) return;
  job.answered[question] += 1;
  if (question === 'charge' && answer !== 'running') job.shownCount += 1;
}
