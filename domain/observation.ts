// Observation
// -----------
// What a provider answered, as an adapter understood it. It moves no money by itself.
//
// Invariants:
//   V1. A charge names an amount of the provider's own, or the usage to price; never neither.
//   V2. A release needs a proof from a closed list. Silence has no member that could free money.
//   V3. Null is not zero: usage that is absent, null, negative or contradictory is `no_answer`.

import type { Amount, AmountJson } from './money.js';

export const EXECUTION_STATUSES = [
  'not_started',
  'running',
  'completed',
  'cancelled',
  'failed',
  'unknown',
] as const;
export type ExecutionStatus = (typeof EXECUTION_STATUSES)[number];

/** Why an attempt is unknown. An attempt can have several, each with its time. */
export const UNKNOWN_REASONS = [
  'no_answer',
  'local_end',
  'handle_lost',
  'not_found',
  'retention_lapsed',
  'terminal_without_charge',
  'inconsistent_usage',
  'price_missing',
  'restored',
] as const;
export type UnknownReason = (typeof UNKNOWN_REASONS)[number];

export type Proof = 'no_connection' | 'documented_rejection' | 'fenced_absence';

export type EvidenceSource =
  'response' | 'lookup' | 'webhook' | 'import' | 'invoice' | 'operator' | 'fence' | 'transport';

/** Source and reference that justify a change. `digest` is that of the raw answer, never its text. */
export interface Evidence {
  readonly source: EvidenceSource;
  readonly reference: string;
  readonly digest?: string;
  readonly status?: string;
}

/** Counts by billable dimension, such as `input_tokens`; whole and never negative. */
export type Usage = Readonly<Record<string, number>>;

export type ChargeBasis = 'final' | 'lower_bound' | 'upper_bound';

interface ChargeOf<A> {
  readonly kind: 'charge';
  /** The total of one attempt, never an increment. */
  readonly basis: ChargeBasis;
  /** By the provider's own word, in the smallest unit of the budget. Without it, `usage` is priced. */
  readonly amount?: A;
  readonly usage?: Usage;
  readonly remoteId?: string;
  readonly evidence: Evidence;
}

interface NotAccepted {
  readonly kind: 'not_accepted';
  readonly proof: Proof;
  readonly detail: string;
  readonly evidence: Evidence;
}

interface StatusSeen {
  readonly kind: 'status';
  readonly status: ExecutionStatus;
  readonly remoteId?: string;
  readonly evidence: Evidence;
}

interface NoAnswer {
  readonly kind: 'no_answer';
  readonly reason: UnknownReason;
  /** For people: what happened, without bodies or secrets. */
  readonly detail: string;
  readonly remoteId?: string;
  /** From `Retry-After`, in milliseconds. */
  readonly retryAfterMs?: number;
  readonly evidence: Evidence;
}

export type Charge = ChargeOf<Amount>;
export type Observation = ChargeOf<Amount> | NotAccepted | StatusSeen | NoAnswer;
/** The JSON twin: amounts are digits. */
export type ObservationJson = ChargeOf<AmountJson> | NotAccepted | StatusSeen | NoAnswer;

export function encodeObservation(observation: Observation): ObservationJson {
  if (observation.kind !== 'charge') return observation;
  const { amount, ...rest } = observation;
  return amount === undefined ? rest : { ...rest, amount: amount.toString() as AmountJson };
}
