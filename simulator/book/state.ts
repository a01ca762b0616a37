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

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

export type Execution = Mutable<Omit<ExecutionEntry, 'event'>> & {
  acceptedAtMs: number;
  state: ExecutionState;
  charged: string;
  chargedAt: string | null;
  chargedRealAt: string | null;
  released: boolean;
  /** All lookups of it, and those of them that were answered with its end. */
  lookupCount: number;
  shownCount: number;
};

export type RequestRow = RequestEntry &
  Stamp & { answered: (Stamp & { readonly status: number }) | null };

export type ChargeRow = ChargeEntry & Stamp & { readonly seq: number; readonly before: string };

export type BookState = {
  readonly requests: Map<number, RequestRow>;
  readonly executions: Map<string, Execution>;
  readonly executionsByKey: Map<string | null, Execution[]>;
  readonly charges: ChargeRow[];
  readonly lookups: (LookupEntry & Stamp)[];
  readonly reports: (ReportEntry & Stamp)[];
  readonly unacceptedLookups: Map<string, LookupSwitches>;
  lastTick: number;
  lastSeq: number;
  offsetMs: number;
};

export function createBookState(): BookState {
  return {
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
      executionOf(state, entry.id).released = true;
      return;
    case 'lookup_switches': {
      const execution = executionOf(state, entry.id);
      execution.switches = { ...execution.switches, lookup: entry.lookup };
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

function executionOf(state: BookState, id: string): Execution {
  const execution = state.executions.get(id);
  if (execution === undefined) throw new RangeError(`The book has no execution ${id}.`);
  return execution;
}

function applyRequest(state: BookState, entry: RequestEntry & Stamp): void {
  state.requests.set(entry.seq, { ...entry, answered: null });
  state.lastSeq = Math.max(state.lastSeq, entry.seq);
  if (entry.key !== null && entry.lookup !== null) {
    state.unacceptedLookups.set(entry.key, entry.lookup);
  }
}

function applyExecution(state: BookState, entry: ExecutionEntry & Stamp): void {
  const execution: Execution = {
    ...entry,
    acceptedAtMs: Date.parse(entry.at),
    state: 'running',
    charged: '0',
    chargedAt: null,
    chargedRealAt: null,
    released: false,
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
  const execution = executionOf(state, entry.id);
  state.charges.push({ ...entry, seq: execution.seq, before: execution.charged });
  execution.charged = entry.total;
  execution.bill = entry.total;
  execution.chargedAt ??= entry.at;
  execution.chargedRealAt ??= entry.realAt;
}

function applyLookup(state: BookState, entry: LookupEntry & Stamp): void {
  state.lookups.push(entry);
  const execution = entry.id === null ? undefined : state.executions.get(entry.id);
  if (execution === undefined) return;
  execution.lookupCount += 1;
  if (entry.answer === 'completed' || entry.answer === 'failed') execution.shownCount += 1;
}
