import type { LookupSwitches, Switches } from '../script/switches.js';

/** `tick` orders all entries of one book; `at` is the simulated clock, `realAt` the real one. */
export type Stamp = { readonly tick: number; readonly at: string; readonly realAt: string };

export type Outcome = 'accepted' | 'refused' | 'dropped_before_reading' | 'replayed';
export type ExecutionState = 'running' | 'completed' | 'failed';

export type RequestEntry = {
  readonly event: 'request';
  readonly seq: number;
  readonly receivedRealAt: string;
  readonly key: string | null;
  readonly model: string | null;
  readonly maxTokens: number | null;
  readonly outcome: Outcome;
  /** Why it was not accepted. */
  readonly reason: string | null;
  readonly id: string | null;
  readonly executionNo: number | null;
  /** How lookups of this key behave although nothing was accepted. */
  readonly lookup: LookupSwitches | null;
};

export type ExecutionEntry = {
  readonly event: 'execution';
  readonly id: string;
  /** What the answer says its id is: another one's, or none. */
  readonly statedId: string | null;
  readonly seq: number;
  readonly key: string | null;
  readonly model: string;
  readonly executionNo: number;
  readonly maxTokens: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly digest: string;
  readonly switches: Switches;
  /** What it will have cost when it has ended. */
  readonly bill: string;
};

export type ChargeCause = 'accept' | 'answer' | 'finish' | 'correction';

/** States the new total of one execution, never an increment. */
export type ChargeEntry = {
  readonly event: 'charge';
  readonly id: string;
  readonly total: string;
  readonly cause: ChargeCause;
};

export type EndEntry = {
  readonly event: 'end';
  readonly id: string;
  readonly state: ExecutionState;
  readonly promptTokens: number;
  readonly completionTokens: number;
};

export type LookupEntry = {
  readonly event: 'lookup';
  readonly seq: number;
  readonly key: string | null;
  readonly id: string | null;
  readonly answer: string;
};

/** A statement of usage or charge that left for the client completely. */
export type ReportEntry = {
  readonly event: 'report';
  readonly seq: number;
  readonly via: 'answer' | 'replay' | 'lookup';
  readonly key: string | null;
  readonly id: string;
  readonly status: string;
  readonly usage: unknown;
  readonly charge: string | null;
};

export type Entry =
  | RequestEntry
  | ExecutionEntry
  | ChargeEntry
  | EndEntry
  | LookupEntry
  | ReportEntry
  | { readonly event: 'release'; readonly id: string }
  | { readonly event: 'lookup_switches'; readonly id: string; readonly lookup: LookupSwitches }
  | { readonly event: 'answered'; readonly seq: number; readonly status: number }
  | { readonly event: 'clock'; readonly offsetMs: number };

export type StampedEntry = Stamp & Entry;
