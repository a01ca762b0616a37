// Movements
// ---------
// The postings of the run, in order, each with what it moved on which budget period. A posting's lines belong
// together: between them the books are not whole, so it happens at the time of its last line.

import { type Journal, type JournalPosting, groupBy, type Micros } from './facts.js';

export interface Movement {
  readonly at: Micros;
  readonly kind: JournalPosting['kind'];
  readonly attemptKey: string;
  readonly changes: readonly Change[];
}

export interface Change {
  readonly budgetPeriodId: bigint;
  readonly budgetId: string;
  readonly held: bigint;
  readonly captured: bigint;
}

/** The limit that was posted for each budget period; one without a posting has none, or 0. */
export function limitsOf(journal: Journal): Map<bigint, bigint> {
  const limits = new Map<bigint, bigint>();
  for (const { account, budgetPeriodId, delta } of journal.entries) {
    if (account !== 'limit') continue;
    // The limit is what the account named so owes: its lines are negative.
    limits.set(budgetPeriodId, (limits.get(budgetPeriodId) ?? 0n) - delta);
  }
  return limits;
}

/**
 * Attempts whose hold was placed before the first entry that was read are left out: their work began before the
 * first request that is judged, so neither side of the comparison has them.
 */
export function listMovements(journal: Journal): Movement[] {
  const linesOf = groupBy(journal.entries, (entry) => entry.postingId);
  const movements = journal.postings.flatMap((posting): Movement[] => {
    const lines = linesOf.get(posting.postingId) ?? [];
    if (posting.attemptKey === null || lines.length === 0) return [];
    const changes = [...groupBy(lines, (line) => line.budgetPeriodId).values()].flatMap((group) => {
      const [first] = group;
      if (first === undefined) return [];
      const sum = (account: 'held' | 'captured'): bigint =>
        group.reduce((total, line) => (line.account === account ? total + line.delta : total), 0n);
      const { budgetPeriodId, budgetId } = first;
      return [{ budgetPeriodId, budgetId, held: sum('held'), captured: sum('captured') }];
    });
    const at = Math.max(...lines.map((line) => line.at));
    return [{ at, kind: posting.kind, attemptKey: posting.attemptKey, changes }];
  });
  const ofRun = new Set<string>();
  return movements
    .sort((a, b) => a.at - b.at)
    .filter(({ kind, attemptKey }) => {
      if (kind === 'hold_placed') ofRun.add(attemptKey);
      return ofRun.has(attemptKey);
    });
}

/**
 * What is held for an attempt, and its bound: the most that was ever held at once. A hold that goes and comes back
 * does not double what the attempt may cost.
 */
export class Bound {
  #held = 0n;
  #most = 0n;

  add(held: bigint): void {
    this.#held += held;
    if (this.#held > this.#most) this.#most = this.#held;
  }

  get amount(): bigint {
    return this.#most;
  }
}
