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

/** What is seen of the work itself. */
export type Execution = 'running' | 'completed' | 'failed' | 'cancelled';

interface ChargeOf<A> {
  readonly kind: 'charge';
  /** The total of one attempt, never an increment. */
  readonly basis: ChargeBasis;
  /** By the provider's own word, in the smallest unit of the budget. Without it, `usage` is priced. */
  readonly amount?: A;
  readonly usage?: Usage;
  /** What became of the work, where the same answer says so; it is never guessed from a charge. */
  readonly execution?: Execution;
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
  /** The work was seen, and its charge was not. */
  readonly execution?: Execution;
  readonly remoteId?: string;
  /** From `Retry-After`, in milliseconds. */
  readonly retryAfterMs?: number;
  readonly evidence: Evidence;
}

export type Charge = ChargeOf<Amount>;
export type Observation = ChargeOf<Amount> | NotAccepted | StatusSeen | NoAnswer;
/** The JSON twin: amounts are digits. */
export type ObservationJson = ChargeOf<AmountJson> | NotAccepted | StatusSeen | NoAnswer;

/** Long enough for any id of a provider, short enough for every index and list. */
const TEXT_LENGTH_MAX = 200;

// A provider may say anything; what it says must never keep its charge out of the ledger.
const UNSTORABLE =
  // eslint-disable-next-line no-control-regex -- control characters are exactly what is looked for
  /[\u0000-\u001f\u007f]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

function storable(text: string): string {
  return text.slice(0, TEXT_LENGTH_MAX).replace(UNSTORABLE, '\uFFFD');
}

function storableEvidence(evidence: Evidence): Evidence {
  return {
    ...evidence,
    reference: storable(evidence.reference) || 'no reference',
    ...(evidence.status !== undefined && { status: storable(evidence.status) }),
  };
}

/** The JSON twin, with the provider's own words made storable: what is cut is an id, never money. */
export function encodeObservation(observation: Observation): ObservationJson {
  const evidence = storableEvidence(observation.evidence);
  switch (observation.kind) {
    case 'charge': {
      const { amount, remoteId, ...rest } = observation;
      return {
        ...rest,
        evidence,
        ...(remoteId !== undefined && { remoteId: storable(remoteId) }),
        ...(amount !== undefined && { amount: amount.toString() as AmountJson }),
      };
    }
    case 'not_accepted':
      return { ...observation, evidence, detail: storable(observation.detail) };
    case 'status': {
      const { remoteId, ...rest } = observation;
      return { ...rest, evidence, ...(remoteId !== undefined && { remoteId: storable(remoteId) }) };
    }
    case 'no_answer': {
      const { remoteId, ...rest } = observation;
      return {
        ...rest,
        evidence,
        detail: storable(observation.detail),
        ...(remoteId !== undefined && { remoteId: storable(remoteId) }),
      };
    }
  }
}
