// Provider steps
// --------------
// What each accepted request means in money, step by step: an acceptance opens what the work can still cost, and a
// charge states a total.
//
// 1. What can still be charged is the bill until the first charge, and after it whatever the provider goes on to
//    charge by itself; of what still runs it is the bill in any case. A correction is no part of it: nobody can hold
//    an amount against it.
// 2. The simulator stamps whole milliseconds, cut off: a step of 10 ms happened anywhere before 11 ms, and the
//    ledger stamps microseconds. A step that raises is therefore taken as 2 ms later than its stamp, and a step
//    that lowers at its stamp. Only facts less than 2 ms apart can change places by that, in the product's favour.
// 3. The steps of one execution keep their order whatever that moves.

import {
  groupBy,
  type Micros,
  type OracleTruth,
  type TrueCharge,
  type TrueRequest,
} from './facts.js';

const TIE_US = 2_000;

export interface ProviderStep {
  readonly seq: number;
  readonly attemptKey: string;
  readonly at: Micros;
  readonly raises: boolean;
  /** What is charged and what can still be charged, without corrections. */
  readonly exposure: bigint;
  /** The part of it that is charged. */
  readonly charged: bigint;
}

type Draft = Omit<ProviderStep, 'raises'>;

export function listProviderSteps(truth: OracleTruth): ProviderStep[] {
  const chargesOf = groupBy(truth.charges, (charge) => charge.seq);
  return truth.requests.flatMap((request) =>
    request.outcome === 'accepted' && request.key !== null
      ? orderSteps(draftSteps(request, request.key, chargesOf.get(request.seq) ?? []))
      : [],
  );
}

export interface Correction {
  readonly attemptKey: string;
  readonly amount: bigint;
}

/** The corrections that raised a total, by how much. */
export function listCorrections(truth: OracleTruth): Correction[] {
  return [...groupBy(truth.charges, (charge) => charge.seq).values()].flatMap((charges) =>
    charges.flatMap((charge, index): Correction[] => {
      const amount = charge.total - (charges[index - 1]?.total ?? 0n);
      const isUpward = charge.cause === 'correction' && amount > 0n;
      return isUpward ? [{ attemptKey: charge.key ?? 'no key', amount }] : [];
    }),
  );
}

function draftSteps(
  request: TrueRequest,
  attemptKey: string,
  charges: readonly TrueCharge[],
): Draft[] {
  const { seq } = request;
  const bill = request.bill ?? 0n;
  const open = request.isRunning ? bill : 0n;
  const step = (at: Micros, charged: bigint, coming: bigint): Draft => {
    return { seq, attemptKey, at, charged, exposure: larger(charged, coming) };
  };
  const own = charges.filter((charge) => charge.cause !== 'correction');
  const first = own.length === 0 && charges.length === 0 ? bill : mostOf(own);
  const drafts = [step(request.decidedAt, 0n, larger(open, first))];
  let counted = 0n;
  for (const [index, charge] of charges.entries()) {
    const { total } = charge;
    counted = charge.cause === 'correction' && total > counted ? counted : total;
    const coming = mostOf(charges.slice(index + 1).filter((each) => each.cause !== 'correction'));
    const next = step(charge.at, counted, larger(open, coming));
    // Booked in the same millisecond is booked together: only what it comes to was ever true.
    if (drafts.at(-1)?.at === charge.at) drafts.pop();
    drafts.push(next);
  }
  return drafts;
}

function orderSteps(drafts: readonly Draft[]): ProviderStep[] {
  const steps: ProviderStep[] = [];
  let latest = Number.POSITIVE_INFINITY;
  for (const [index, draft] of [...drafts.entries()].reverse()) {
    const raises = draft.exposure >= (drafts[index - 1]?.exposure ?? 0n);
    const at = Math.min(raises ? draft.at + TIE_US : draft.at, latest - 1);
    latest = at;
    steps.unshift({ ...draft, raises, at });
  }
  return steps;
}

function mostOf(charges: readonly TrueCharge[]): bigint {
  return charges.reduce((most, { total }) => larger(most, total), 0n);
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
