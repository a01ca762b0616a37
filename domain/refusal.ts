// Refusal
// -------
// An admission that was not granted, with the numbers of that instant. An answer, never an error
// and never a state: nothing was held and nothing was sent.

import { type AmountJson, type Unit, formatAmount } from './money.js';

export const REFUSAL_REASONS = [
  'exceeds_available',
  'exceeds_limit',
  'unpriced',
  'unbounded',
  'frozen',
  'budget_not_found',
  'key_reused',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

export interface Refusal {
  readonly reason: RefusalReason;
  readonly budgetId?: string;
  readonly unit?: Unit;
  readonly neededAmount?: AmountJson;
  readonly limitAmount?: AmountJson;
  readonly availableAmount?: string;
  readonly heldAmount?: AmountJson;
  readonly unknownAmount?: AmountJson;
  readonly capturedAmount?: AmountJson;
  readonly dimension?: string;
  readonly detail?: string;
}

/** One sentence for people, with its numbers. */
export function describeRefusal(refusal: Refusal): string {
  const { unit } = refusal;
  const say = (digits: string | undefined): string =>
    digits === undefined || unit === undefined ? 'no limit' : formatAmount(BigInt(digits), unit);
  const budget = `budget "${refusal.budgetId ?? ''}"`;
  switch (refusal.reason) {
    case 'exceeds_available':
      return (
        `${budget} has too little left: needs ${say(refusal.neededAmount)}, ` +
        `available ${say(refusal.availableAmount)}, held ${say(refusal.heldAmount)} ` +
        `of which ${say(refusal.unknownAmount)} unknown`
      );
    case 'exceeds_limit':
      return `${budget} can never hold this: needs ${say(refusal.neededAmount)}, limit ${say(refusal.limitAmount)}`;
    case 'frozen':
      return `${budget} is frozen`;
    case 'unpriced':
    case 'unbounded':
    case 'budget_not_found':
    case 'key_reused':
      return refusal.detail ?? refusal.reason;
  }
}
