import type { CancelSwitches, LookupSwitches, Switches } from '../script/switches.js';

/** `tick` orders all entries of one book; `at` is the simulated clock, `realAt` the real one. */
export type Stamp = { readonly tick: number; readonly at: string; readonly realAt: string };

export type Outcome = 'accepted' | 'refused' | 'dropped_before_reading' | 'replayed';
export type ExecutionState = 'running' | 'completed' | 'failed';
export type JobState = ExecutionState | 'cancelled';

export type RequestEntry = {
  readonly event: 'request';
  readonly seq: number;
  readonly receivedRealAt: string;
  readonly key: string | null;
  readonly model: string | null;
  readonly maxTokens: number | null;
  /** The bound of a job. */
  readonly limitTicks: number | null;
  readonly outcome: Outcome;
  /** Why it was not accepted. */
  readonly reason: string | null;
  readonly id: string | null;
  readonly executionNo: number | null;
  /** How lookups of this key behave although nothing was accepted. */
  readonly lookup: LookupSwitches | null;
  readonly chargeLookup: LookupSwitches | null;
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

export type ChargeCause = 'accept' | 'answer' | 'finish' | 'tick' | 'correction';

/** States the new total of one execution or job, never an increment. */
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

export type Question = 'receipt' | 'status' | 'charge';

export type LookupEntry = {
  readonly event: 'lookup';
  readonly seq: number;
  readonly question: Question;
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
  /** Whether it says that nothing more will be charged. */
  readonly final: boolean;
};

export type JobEntry = {
  readonly event: 'job';
  readonly id: string;
  readonly statedId: string | null;
  readonly seq: number;
  readonly key: string | null;
  readonly model: string;
  readonly executionNo: number;
  readonly limitTicks: number;
  /** What a tick costs, kept with the job: a later price list does not change it. */
  readonly rate: string;
  readonly digest: string;
  readonly switches: Switches;
  readonly bill: string;
};

/** Ticks have passed, and each of the jobs that ran has one more. */
export type TicksEntry = {
  readonly event: 'ticks';
  readonly worldTicks: number;
  readonly running: readonly string[];
};

export type JobEndEntry = {
  readonly event: 'job_end';
  readonly id: string;
  readonly state: JobState;
};

export type CancelEntry = {
  readonly event: 'cancel';
  readonly seq: number;
  readonly key: string | null;
  readonly id: string | null;
  readonly answer: string;
  /** Whether the job was asked to stop by it, and at how many ticks of the job it is to happen. */
  readonly isTaken: boolean;
  readonly dueTicks: number | null;
};

export type JobsEntry =
  | JobEntry
  | TicksEntry
  | JobEndEntry
  | CancelEntry
  | { readonly event: 'cancel_switches'; readonly id: string; readonly cancel: CancelSwitches }
  | { readonly event: 'outage'; readonly jobs: boolean };

export type Entry =
  | RequestEntry
  | ExecutionEntry
  | ChargeEntry
  | EndEntry
  | LookupEntry
  | ReportEntry
  | JobsEntry
  | { readonly event: 'release'; readonly id: string }
  | {
      readonly event: 'lookup_switches';
      readonly id: string;
      readonly lookup?: LookupSwitches | undefined;
      readonly charge_lookup?: LookupSwitches | undefined;
    }
  | { readonly event: 'answered'; readonly seq: number; readonly status: number }
  | { readonly event: 'clock'; readonly offsetMs: number };

export type StampedEntry = Stamp & Entry;
