// Facts
// -----
// What the oracle judges, as plain data: the provider's truth and the raw journal. Times are whole
// microseconds since 1970, because Postgres stamps that finely and the order of two facts is what is judged.

export type Micros = number;

export interface TrueRequest {
  readonly seq: number;
  readonly key: string | null;
  readonly outcome: 'accepted' | 'refused' | 'dropped_before_reading' | 'replayed';
  readonly receivedAt: Micros;
  /** When it was decided: of an accepted one, when its work began. */
  readonly decidedAt: Micros;
  /** What the work may still come to while it runs, and then what it came to; null where none was started. */
  readonly bill: bigint | null;
  readonly isRunning: boolean;
  readonly answered: { readonly at: Micros; readonly status: number } | null;
}

/** A new total of the execution that the request `seq` started, in the order they were booked. */
export interface TrueCharge {
  readonly seq: number;
  readonly key: string | null;
  readonly at: Micros;
  readonly total: bigint;
  readonly cause: 'accept' | 'answer' | 'finish' | 'tick' | 'correction';
}

/** A statement that left for the client completely. */
export interface TrueReport {
  readonly key: string | null;
  readonly at: Micros;
  readonly status: string;
  readonly charge: bigint | null;
  /** Whether it says that nothing more will be charged. */
  readonly final: boolean;
}

export interface OracleTruth {
  readonly requests: readonly TrueRequest[];
  readonly charges: readonly TrueCharge[];
  readonly reports: readonly TrueReport[];
}

export interface JournalPosting {
  readonly postingId: bigint;
  readonly kind: 'limit_set' | 'hold_placed' | 'hold_raised' | 'hold_returned' | 'hold_captured';
  readonly attemptKey: string | null;
}

export interface JournalEntry {
  readonly postingId: bigint;
  readonly budgetPeriodId: bigint;
  readonly budgetId: string;
  readonly account: 'limit' | 'available' | 'held' | 'captured';
  /** With its sign: direction × amount. */
  readonly delta: bigint;
  readonly at: Micros;
}

export interface JournalAttempt {
  readonly attemptKey: string;
  readonly phase: string;
}

export interface JournalRefusal {
  readonly operationKey: string;
  readonly reason: string;
  readonly budgetId: string | null;
  readonly at: Micros;
  /** Null where the refusal has no such number. */
  readonly needed: bigint | null;
  readonly available: bigint | null;
  readonly limit: bigint | null;
}

export interface JournalEvent {
  readonly attemptKey: string | null;
  readonly kind: string;
  readonly at: Micros;
}

export interface Journal {
  readonly entries: readonly JournalEntry[];
  readonly postings: readonly JournalPosting[];
  readonly attempts: readonly JournalAttempt[];
  readonly refusals: readonly JournalRefusal[];
  readonly events: readonly JournalEvent[];
  /** What was captured or held on a budget before the first entry that was read; only those above 0. */
  readonly earlier: readonly { readonly budgetId: string; readonly amount: bigint }[];
}

export function describeTime(at: Micros): string {
  return new Date(Math.floor(at / 1_000)).toISOString();
}

export function groupBy<T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
