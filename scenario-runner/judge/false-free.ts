// False-free
// ----------
// Money that was free while the provider could still take it. At every instant, per budget period: what the
// provider has charged and can still charge, each attempt up to its bound, is captured or held. A check at the end
// would miss a hold that was freed for four seconds.

import { describeTime, type Journal, type Micros, type OracleTruth } from './facts.js';
import { Bound, type Change, limitsOf, listMovements, type Movement } from './movements.js';
import { listProviderSteps, type ProviderStep } from './provider-steps.js';

export interface Overshoot {
  readonly attemptKey: string;
  readonly amount: bigint;
}

export interface Comparison {
  readonly instantCount: number;
  /** A sentence each. */
  readonly violations: readonly string[];
  readonly aboveBound: readonly Overshoot[];
}

export function compareInstants(truth: OracleTruth, journal: Journal): Comparison {
  const movements = listMovements(journal);
  const scales = new Scales(journal);
  for (const movement of movements) scales.expect(movement);
  for (const instant of orderInstants(movements, listProviderSteps(truth))) scales.take(instant);
  return scales;
}

type Instant =
  | { readonly at: Micros; readonly rank: number; readonly movement: Movement }
  | { readonly at: Micros; readonly rank: number; readonly step: ProviderStep };

/** At one and the same time the order is the one in which a product without fault would have done it. */
function orderInstants(movements: readonly Movement[], steps: readonly ProviderStep[]): Instant[] {
  return [
    ...movements.map((movement): Instant => {
      const isPlacing = movement.kind === 'hold_placed' || movement.kind === 'hold_raised';
      return { at: movement.at, rank: isPlacing ? 0 : 2, movement };
    }),
    ...steps.map((step): Instant => ({ at: step.at, rank: step.raises ? 3 : 1, step })),
  ].sort((a, b) => a.at - b.at || a.rank - b.rank);
}

interface Period {
  readonly budgetId: string;
  covered: bigint;
  exposure: bigint;
}

interface Place {
  readonly period: Period;
  /** What the first hold was: that much was stated when the attempt was admitted. */
  readonly stated: bigint;
  readonly bound: Bound;
  /** What the attempt adds to the exposure of the period. */
  share: bigint;
}

interface Attempt {
  readonly steps: Map<number, ProviderStep>;
  readonly places: Map<bigint, Place>;
  overshoot: bigint;
}

class Scales implements Comparison {
  instantCount = 0;
  readonly violations: string[] = [];
  readonly #periods = new Map<bigint, Period>();
  readonly #attempts: ReadonlyMap<string, Attempt>;
  readonly #limits: ReadonlyMap<bigint, bigint>;

  constructor(journal: Journal) {
    const { attempts } = journal;
    this.#limits = limitsOf(journal);
    this.#attempts = new Map(
      attempts.map(({ attemptKey }) => [
        attemptKey,
        { steps: new Map(), places: new Map(), overshoot: 0n },
      ]),
    );
  }

  get aboveBound(): readonly Overshoot[] {
    return [...this.#attempts].flatMap(([attemptKey, { overshoot }]) =>
      overshoot > 0n ? [{ attemptKey, amount: overshoot }] : [],
    );
  }

  /** Told of every movement beforehand, so that work before its own hold weighs on the right budget too. */
  expect({ kind, attemptKey, changes }: Movement): void {
    const places = this.#attempts.get(attemptKey)?.places;
    if (places === undefined || kind !== 'hold_placed') return;
    for (const change of changes) {
      if (places.has(change.budgetPeriodId)) continue;
      const period = this.#periodOf(change);
      const place = { period, stated: change.held, bound: new Bound(), share: 0n };
      places.set(change.budgetPeriodId, place);
    }
  }

  take(instant: Instant): void {
    const key = 'step' in instant ? instant.step.attemptKey : instant.movement.attemptKey;
    const attempt = this.#attempts.get(key);
    // Work under an unknown key is on no budget; the check of known attempts tells it.
    if (attempt === undefined) return;
    if ('step' in instant) attempt.steps.set(instant.step.seq, instant.step);
    else {
      this.#move(attempt, instant.movement);
      this.#compareWithLimit(instant.movement);
    }
    this.#compare(attempt, `${describeTime(instant.at)} attempt ${key}`);
  }

  #periodOf({ budgetPeriodId, budgetId }: Change): Period {
    const period = this.#periods.get(budgetPeriodId) ?? { budgetId, covered: 0n, exposure: 0n };
    this.#periods.set(budgetPeriodId, period);
    return period;
  }

  #move({ places }: Attempt, { changes }: Movement): void {
    for (const change of changes) {
      this.#periodOf(change).covered += change.held + change.captured;
      places.get(change.budgetPeriodId)?.bound.add(change.held);
    }
  }

  /** A hold that was placed must have fitted: what is captured and held beside it is within the limit. */
  #compareWithLimit({ at, kind, attemptKey, changes }: Movement): void {
    if (kind !== 'hold_placed') return;
    for (const { budgetPeriodId } of changes) {
      const limit = this.#limits.get(budgetPeriodId);
      const { budgetId, covered } = this.#periods.get(budgetPeriodId) ?? {
        budgetId: '',
        covered: 0n,
      };
      if (limit === undefined || covered <= limit) continue;
      this.violations.push(
        `${describeTime(at)} attempt ${attemptKey}: admitted above the limit of budget "${budgetId}": ` +
          `captured + held is ${covered.toString()} of ${limit.toString()}`,
      );
    }
  }

  #compare(attempt: Attempt, where: string): void {
    const steps = [...attempt.steps.values()];
    const places = [...attempt.places.values()];
    const stated = places.reduce((most, place) => larger(most, place.stated), 0n);
    const charged = steps.reduce((sum, step) => sum + step.charged, 0n);
    attempt.overshoot = larger(attempt.overshoot, charged - stated);
    // An attempt that holds 0 is on no budget: what is charged for it is above its bound.
    this.instantCount += 1;
    const exposure = steps.reduce((sum, step) => sum + step.exposure, 0n);
    for (const place of places) {
      const { period } = place;
      const bound = larger(place.stated, place.bound.amount);
      const share = exposure < bound ? exposure : bound;
      period.exposure += share - place.share;
      place.share = share;
      if (period.exposure <= period.covered) continue;
      this.violations.push(
        `${where}: of budget "${period.budgetId}" the provider has charged or can still charge ` +
          `${period.exposure.toString()}, and captured + held is ${period.covered.toString()}`,
      );
    }
  }
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
