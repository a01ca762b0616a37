// The state of the book
// ---------------------
// What all entries add up to. It is changed by `applyEntry` alone, so a book that is read again is the same book.

import type {
  ChargeEntry,
  ExecutionEntry,
  ExecutionState,
  LookupEntry,
  ReportEntry,
  RequestEntry,
  Stamp,
  StampedEntry,
} from './entries.js';
import type { LookupSwitches } from '../script/switches.js';
import {
  applyJobsEntry,
  chargeJob,
  countQuestion,
  createJobsState,
  isJobsEntry,
  jobOf,
} from './jobs-state.js';
import type { JobsState } from './jobs-state.js';
import { chargeWork, freshWork } from './work.js';
import type { Work } from './work.js';

export type Execution = Omit<
  ExecutionEntry,
  'event' | keyof Work | 'promptTokens' | 'completionTokens'
> &
  Work & {
    promptTokens: number;
    completionTokens: number;
    state: ExecutionState;
    /** All lookups of it, and those of them that were answered with its end. */
    lookupCount: number;
    shownCount: number;
  };

export type RequestRow = RequestEntry &
  Stamp & { answered: (Stamp & { readonly status: number }) | null };

export type ChargeRow = ChargeEntry & Stamp & { readonly seq: number; readonly before: string };

/** What lookups of a key do under which nothing was accepted. */
export type UnacceptedLookups = {
  readonly lookup: LookupSwitches | null;
  readonly chargeLookup: LookupSwitches | null;
};

export type BookState = JobsState & {
  readonly requests: Map<number, RequestRow>;
  readonly executions: Map<string, Execution>;
  readonly executionsByKey: Map<string | null, Execution[]>;
  readonly charges: ChargeRow[];
  readonly lookups: (LookupEntry & Stamp)[];
  readonly reports: (ReportEntry & Stamp)[];
  readonly unacceptedLookups: Map<string, UnacceptedLookups>;
  lastTick: number;
  lastSeq: number;
  offsetMs: number;
};

export function createBookState(): BookState {
  return {
    ...createJobsState(),
    requests: new Map(),
    executions: new Map(),
    executionsByKey: new Map(),
    charges: [],
    lookups: [],
    reports: [],
    unacceptedLookups: new Map(),
    lastTick: 0,
    lastSeq: 0,
    offsetMs: 0,
  };
}

export function applyEntry(state: BookState, entry: StampedEntry): void {
  state.lastTick = entry.tick;
  if (isJobsEntry(entry)) {
    applyJobsEntry(state, entry);
    return;
  }
  switch (entry.event) {
    case 'request':
      applyRequest(state, entry);
      return;
    case 'execution':
      applyExecution(state, entry);
      return;
    case 'charge':
      applyCharge(state, entry);
      return;
    case 'end': {
      const { state: end, promptTokens, completionTokens } = entry;
      Object.assign(executionOf(state, entry.id), { state: end, promptTokens, completionTokens });
      return;
    }
    case 'release':
      workOf(state, entry.id).released = true;
      return;
    case 'lookup_switches': {
      const work = workOf(state, entry.id);
      const { lookup = work.switches.lookup, charge_lookup = work.switches.charge_lookup } = entry;
      work.switches = { ...work.switches, lookup, charge_lookup };
      return;
    }
    case 'lookup':
      applyLookup(state, entry);
      return;
    case 'report':
      state.reports.push(entry);
      return;
    case 'answered': {
      const row = state.requests.get(entry.seq);
      if (row !== undefined) row.answered = entry;
      return;
    }
    case 'clock':
      state.offsetMs = entry.offsetMs;
  }
}

function workOf(state: BookState, id: string): Work {
  return state.executions.get(id) ?? jobOf(state, id);
}

function executionOf(state: BookState, id: string): Execution {
  const execution = state.executions.get(id);
  if (execution === undefined) throw new RangeError(`The book has no execution ${id}.`);
  return execution;
}

function applyRequest(state: BookState, entry: RequestEntry & Stamp): void {
  state.requests.set(entry.seq, { ...entry, answered: null });
  state.lastSeq = Math.max(state.lastSeq, entry.seq);
  const { key, lookup, chargeLookup } = entry;
  if (key !== null && (lookup !== null || chargeLookup !== null)) {
    state.unacceptedLookups.set(key, { lookup, chargeLookup });
  }
}

function applyExecution(state: BookState, entry: ExecutionEntry & Stamp): void {
  const execution: Execution = {
    ...entry,
    ...freshWork(entry.at),
    state: 'running',
    lookupCount: 0,
    shownCount: 0,
  };
  state.executions.set(entry.id, execution);
  state.executionsByKey.set(entry.key, [
    ...(state.executionsByKey.get(entry.key) ?? []),
    execution,
  ]);
}

function applyCharge(state: BookState, entry: ChargeEntry & Stamp): void {
  const { seq, charged: before } = workOf(state, entry.id);
  state.charges.push({ ...entry, seq, before });
  const job = state.jobs.get(entry.id);
  if (job !== undefined) {
    chargeJob(job, entry);
    return;
  }
  const execution = executionOf(state, entry.id);
  chargeWork(execution, entry);
  execution.bill = entry.total;
}

function applyLookup(state: BookState, entry: LookupEntry & Stamp): void {
  state.lookups.push(entry);
  if (entry.id === null) return;
  const job = state.jobs.get(entry.id);
  if (job !== undefined) countQuestion(job, entry);
  const execution = state.executions.get(entry.id);
  if (execution === undefined) return;
  execution.lookupCount += 1;
  if (entry.answer === 'completed' || entry.answer === 'failed') execution.shownCount += 1;
}
