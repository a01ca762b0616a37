// Watch
// -----
// What the ledger says to those who watch it: sums over all operations, and the conservation check.
// It has connections of its own, so that watching takes none from a step about money, and limits of
// its own, so that a question about health is answered soon, also when the answer is no.

import { z } from 'zod';
import { type Unit, UNITS } from '../domain/money.js';
import { openLedger } from './connection.js';
import { type LedgerIdentity, readIdentity } from './read.js';
import { decodeAnswer } from './snapshot-row.js';

/** How long a scrape, or a question about health, waits for the ledger, in milliseconds. */
const WATCH_LIMIT_MS = 2_000;
/** The check reads every entry there is. */
const CHECK_LIMIT_MS = 30_000;

/** What `ledger.check()` can find, in its own words; a test compares them. */
export const BOOK_PROBLEMS = [
  'a posting does not sum to zero',
  'a counter differs from the sum of its entries',
  'an entry sequence has a gap',
  'a balance does not follow from the entry before',
  'the held amount is not the sum of the open holds',
  'the captured amount is not the sum of the captures',
  'an attempt and its holds disagree on being ended',
  'an ended attempt does not have exactly one end posting',
  'a state is not what its attempts say',
  'an event chain is broken',
] as const;

const Whole = z.string().transform((text) => BigInt(text));

const OpenByState = z.object({
  state: z.string(),
  provider: z.string(),
  operation_count: z.number(),
});
const OpenByCancel = z.object({ cancel: z.string(), operation_count: z.number() });
const HeldByProvider = z.object({
  budget_id: z.string(),
  provider: z.string(),
  held_amount: Whole,
  unknown_amount: Whole,
});
const UnknownByProvider = z.object({ provider: z.string(), oldest_age_s: z.number() });
const BudgetTotals = z.object({
  budget_id: z.string(),
  unit: z.enum(UNITS as [Unit, ...Unit[]]),
  /** Null for a budget without a limit. */
  limit_amount: Whole.nullable(),
  /** Negative after an overrun. */
  available_amount: Whole.nullable(),
  captured_amount: Whole,
  overrun_amount: Whole,
});
export type BudgetTotals = z.infer<typeof BudgetTotals>;

/** Counted where they are found: badly broken books have a row for every entry. */
const BrokenRule = z.object({
  problem: z.string(),
  row_count: z.number(),
  /** One of what it was found at, for the log. */
  subject: z.string(),
});
export type BrokenRule = z.infer<typeof BrokenRule>;

export interface LedgerFigures {
  readonly openByState: readonly z.infer<typeof OpenByState>[];
  readonly openByCancel: readonly z.infer<typeof OpenByCancel>[];
  readonly heldByProvider: readonly z.infer<typeof HeldByProvider>[];
  readonly unknownByProvider: readonly z.infer<typeof UnknownByProvider>[];
  /** The oldest budget first. */
  readonly budgets: readonly BudgetTotals[];
}

export interface LedgerWatch {
  /** Throws HoldfastError within 2 s, as `identity` does. */
  figures(): Promise<LedgerFigures>;
  identity(): Promise<LedgerIdentity | undefined>;
  /** The conservation check; long on a long ledger. */
  brokenRules(): Promise<BrokenRule[]>;
  close(): Promise<void>;
}

export function openWatch(databaseUrl: string): LedgerWatch {
  const soon = openLedger({
    databaseUrl,
    poolSizeMax: 2,
    stepLimitMs: WATCH_LIMIT_MS,
    applicationName: 'holdfast watch',
  });
  const patient = openLedger({
    databaseUrl,
    poolSizeMax: 1,
    stepLimitMs: CHECK_LIMIT_MS,
    tryLimitMs: CHECK_LIMIT_MS,
    applicationName: 'holdfast check',
  });
  const read = async <T>(schema: z.ZodType<T>, view: string, order: string): Promise<T[]> => {
    const text = `select * from ledger.${view} order by ${order}`;
    return decodeAnswer(z.array(schema), await soon.query({ name: view, text }));
  };
  return {
    async figures() {
      const [openByState, openByCancel, heldByProvider, unknownByProvider, budgets] =
        await Promise.all([
          read(OpenByState, 'open_by_state_view', 'state, provider'),
          read(OpenByCancel, 'open_by_cancel_view', 'cancel'),
          read(HeldByProvider, 'held_by_provider_view', 'budget_id, provider'),
          read(UnknownByProvider, 'unknown_by_provider_view', 'provider'),
          read(BudgetTotals, 'budget_watch_view', 'created_at, budget_id'),
        ]);
      return { openByState, openByCancel, heldByProvider, unknownByProvider, budgets };
    },
    identity: () => readIdentity(soon),
    async brokenRules() {
      const rows = await patient.query({
        name: 'broken_rules',
        text: `select problem, count(*)::integer as row_count, min(subject) as subject
               from ledger.check() group by problem order by problem`,
      });
      return decodeAnswer(z.array(BrokenRule), rows);
    },
    async close() {
      // Not waited for: a check may run for long, and nobody needs its result any more.
      void patient.close();
      await soon.close();
    },
  };
}
