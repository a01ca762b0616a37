// Decide
// ------
// What one observation does to one attempt. The ledger's `record_observation` is its twin; a test
// plays random sequences through both and compares.
//
// Invariants:
//   D1. Only a final charge, or a proof that nothing was charged, ends a hold.
//   D2. A proof that contradicts a trace or a floor proves nothing: the hold is kept.
//   D3. A floor only rises, and never above what was reported.

import { type Amount, amount } from './money.js';
import type { AttemptPhase } from './operation.js';
import { isEnded } from './operation.js';
import type { Charge, Observation, Proof, UnknownReason, Usage } from './observation.js';

/** What the decision needs to know of the attempt; amounts in the smallest unit of the budget. */
export interface AttemptFacts {
  readonly phase: AttemptPhase;
  readonly heldAmount: Amount;
  readonly floorAmount: Amount;
  /** The provider has shown that it knows this attempt: an id, a status, a floor; or its create was repeated. */
  readonly hasTrace: boolean;
  /** Every rate of the route is an explicit zero. */
  readonly isFreeRoute: boolean;
  /** The total that ended the attempt, when it is `charged`. */
  readonly capturedAmount?: Amount;
}

export type Decision =
  | { readonly action: 'capture'; readonly amount: Amount; readonly overrun: Amount }
  | { readonly action: 'end_free'; readonly proof: Proof | 'charged_zero' }
  | {
      readonly action: 'raise_floor';
      readonly floor: Amount;
      readonly heldAmount: Amount;
      /** Work that has ended while its final charge was not stated is unknown. */
      readonly phase: 'in_flight' | 'unknown';
    }
  | { readonly action: 'retain'; readonly phase: 'in_flight' }
  | { readonly action: 'retain'; readonly phase: 'unknown'; readonly reason: UnknownReason }
  | { readonly action: 'duplicate' }
  | { readonly action: 'note_after_end' };

const unknown = (reason: UnknownReason): Decision => ({
  action: 'retain',
  phase: 'unknown',
  reason,
});

/**
 * `pricedAmount` is the charge in the smallest unit: the provider's own amount, or the usage priced
 * by the attempt's price version; undefined when the price book does not know a dimension.
 */
export function decide(
  attempt: AttemptFacts,
  observation: Observation,
  pricedAmount: Amount | undefined,
): Decision {
  if (isEnded(attempt.phase)) return decideAfterEnd(attempt, observation, pricedAmount);
  switch (observation.kind) {
    case 'charge':
      if (pricedAmount === undefined) return unknown('price_missing');
      return decideCharge(attempt, observation, pricedAmount);
    case 'not_accepted':
      if (attempt.hasTrace || attempt.floorAmount > 0n) return unknown('inconsistent_usage');
      return { action: 'end_free', proof: observation.proof };
    case 'status':
      return decideStatus(observation.status);
    case 'no_answer':
      return unknown(observation.reason);
  }
}

function decideCharge(attempt: AttemptFacts, charge: Charge, total: Amount): Decision {
  switch (charge.basis) {
    case 'final':
      if (total < attempt.floorAmount) return unknown('inconsistent_usage');
      if (total === 0n && !attempt.isFreeRoute) {
        // Zero with work done on a priced route is not a price of zero.
        return showsWork(charge.usage)
          ? unknown('inconsistent_usage')
          : { action: 'end_free', proof: 'charged_zero' };
      }
      return { action: 'capture', amount: total, overrun: overrunOf(total, attempt.heldAmount) };
    case 'lower_bound': {
      const floor = total > attempt.floorAmount ? total : attempt.floorAmount;
      return {
        action: 'raise_floor',
        floor,
        heldAmount: floor > attempt.heldAmount ? floor : attempt.heldAmount,
        phase: (charge.execution ?? 'running') === 'running' ? 'in_flight' : 'unknown',
      };
    }
    case 'upper_bound':
      // It can settle only by a stated policy over a closed group; alone it settles nothing.
      return unknown('terminal_without_charge');
  }
}

function decideStatus(status: Extract<Observation, { kind: 'status' }>['status']): Decision {
  switch (status) {
    case 'not_started':
    case 'running':
      return { action: 'retain', phase: 'in_flight' };
    case 'completed':
    case 'cancelled':
    case 'failed':
      return unknown('terminal_without_charge');
    case 'unknown':
      return unknown('no_answer');
  }
}

function decideAfterEnd(
  attempt: AttemptFacts,
  observation: Observation,
  pricedAmount: Amount | undefined,
): Decision {
  const isSameTotal =
    observation.kind === 'charge' &&
    observation.basis === 'final' &&
    pricedAmount !== undefined &&
    pricedAmount === (attempt.capturedAmount ?? 0n);
  return { action: isSameTotal ? 'duplicate' : 'note_after_end' };
}

function showsWork(usage: Usage | undefined): boolean {
  return Object.entries(usage ?? {}).some(
    ([dimension, count]) => dimension !== 'request' && count > 0,
  );
}

function overrunOf(charged: Amount, held: Amount): Amount {
  return amount(charged > held ? charged - held : 0n);
}
