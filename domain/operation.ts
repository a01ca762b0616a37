// Operation
// ---------
// One piece of paid work. Its state says what is known about the charge, never what we hope. It is
// computed from its attempts by `computeOperationState`, whose twin is `ledger.compute_state`.
//
// Invariants:
//   O1. A hold ends only on evidence: a charge, or a proof that nothing was charged.
//   O2. Silence is not evidence: no answer keeps the whole hold.
//   O3. The end of the remote work is not the charge for it.
//   O4. Nothing leaves `unknown` because of time.

export const ATTEMPT_PHASES = [
  'not_sent',
  'sending',
  'in_flight',
  'unknown',
  'withdrawn',
  'free',
  'charged',
] as const;
export type AttemptPhase = (typeof ATTEMPT_PHASES)[number];

export type OperationState = 'held' | 'dispatched' | 'unknown' | 'settled' | 'released';

export const CANCEL_STATES = [
  'none',
  'requested',
  'acknowledged',
  'confirmed_stopped',
  'refused',
  'unsupported',
  'not_honoured',
] as const;
export type CancelState = (typeof CANCEL_STATES)[number];

/** How a closed operation ended, as its callers hear it. */
export type OperationOutcome = 'settled' | 'released' | 'refused' | 'stopped';

const ENDED: ReadonlySet<AttemptPhase> = new Set(['withdrawn', 'free', 'charged']);

export function isEnded(phase: AttemptPhase): boolean {
  return ENDED.has(phase);
}

/** Throws RangeError without an attempt: an operation begins with its first hold. */
export function computeOperationState(phases: readonly AttemptPhase[]): OperationState {
  if (phases.length === 0) throw new RangeError('an operation has at least one attempt');
  const has = (phase: AttemptPhase): boolean => phases.includes(phase);
  if (has('unknown')) return 'unknown';
  if (has('sending') || has('in_flight')) return 'dispatched';
  if (has('not_sent')) return has('free') || has('charged') ? 'dispatched' : 'held';
  return has('charged') ? 'settled' : 'released';
}

/** The legal steps, equal to the rows of `ledger.legal_transition`. */
export const TRANSITIONS: Readonly<Record<OperationState | 'new', readonly OperationState[]>> = {
  new: ['held', 'unknown'],
  held: ['dispatched', 'released', 'unknown'],
  dispatched: ['unknown', 'settled', 'released', 'held'],
  unknown: ['dispatched', 'settled', 'released', 'held'],
  settled: [],
  released: ['held'],
};
