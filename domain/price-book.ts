// Price book
// ----------
// Usage × rate → cost. A rate is a whole amount per `perCount` units of one billable dimension.
//
// Invariants:
//   B1. A dimension without a rate is unpriced, never zero; zero must be said.
//   B2. Products are added exactly and rounded up once, at the end.

import { type Amount, amount } from './money.js';
import type { Usage } from './observation.js';

export interface Rate {
  readonly dimension: string;
  /** In the smallest unit of the budget, per `perCount` of the dimension. */
  readonly rateAmount: Amount;
  readonly perCount: bigint;
}

export type Cost =
  | { readonly status: 'priced'; readonly amount: Amount }
  | { readonly status: 'unpriced'; readonly dimension: string }
  | { readonly status: 'unbounded'; readonly dimension: string };

/** What the usage costs, rounded up once. A dimension of the usage without a rate is `unpriced`. */
export function costRoundedUp(usage: Usage, rates: readonly Rate[]): Cost {
  let numerator = 0n;
  let denominator = 1n;
  for (const [dimension, count] of Object.entries(usage)) {
    const rate = rates.find((candidate) => candidate.dimension === dimension);
    if (rate === undefined) return { status: 'unpriced', dimension };
    numerator = numerator * rate.perCount + BigInt(count) * rate.rateAmount * denominator;
    denominator *= rate.perCount;
  }
  return { status: 'priced', amount: amount((numerator + denominator - 1n) / denominator) };
}

/**
 * The most that one send can cost: every billable dimension at its bound × its rate, times the paid
 * attempts that one send can cause at the provider. A rate above zero without a bound is `unbounded`.
 */
export function worstCaseRoundedUp(
  bound: Usage,
  rates: readonly Rate[],
  paidAttemptsPerSend: number,
): Cost {
  const open = rates.find((rate) => rate.rateAmount > 0n && !Object.hasOwn(bound, rate.dimension));
  if (open !== undefined) return { status: 'unbounded', dimension: open.dimension };
  const cost = costRoundedUp(bound, rates);
  if (cost.status !== 'priced') return cost;
  return { status: 'priced', amount: amount(cost.amount * BigInt(paidAttemptsPerSend)) };
}
