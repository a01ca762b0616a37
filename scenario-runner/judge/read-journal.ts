// The raw journal, read over the owner's connection: rows as they were written, and none of the ledger's own sums.

import type { ClientBase, QueryResultRow } from 'pg';
import { z } from 'zod';
import type { Journal } from './facts.js';

export interface JournalRange {
  /** The last `entry_id` of what came before the run. */
  readonly since?: bigint;
}

// Numbers come as texts, because a bigint of Postgres does not fit a number of JavaScript.
const integer = z.string().transform((text) => BigInt(text));
const micros = z.string().transform(Number);

const entryRow = z
  .object({
    posting_id: integer,
    budget_period_id: integer,
    budget_id: z.string(),
    account: z.enum(['limit', 'available', 'held', 'captured']),
    delta: integer,
    at: micros,
  })
  .transform((row) => ({
    postingId: row.posting_id,
    budgetPeriodId: row.budget_period_id,
    budgetId: row.budget_id,
    account: row.account,
    delta: row.delta,
    at: row.at,
  }));

const postingRow = z
  .object({
    posting_id: integer,
    kind: z.enum(['limit_set', 'hold_placed', 'hold_raised', 'hold_returned', 'hold_captured']),
    attempt_key: z.string().nullable(),
  })
  .transform((row) => ({
    postingId: row.posting_id,
    kind: row.kind,
    attemptKey: row.attempt_key,
  }));

const attemptRow = z
  .object({ attempt_key: z.string(), phase: z.string() })
  .transform((row) => ({ attemptKey: row.attempt_key, phase: row.phase }));

const refusalRow = z
  .object({
    operation_key: z.string(),
    reason: z.string(),
    budget_id: z.string().nullable(),
    at: micros,
    needed: integer.nullable(),
    available: integer.nullable(),
    limit: integer.nullable(),
  })
  .transform(({ operation_key: operationKey, budget_id: budgetId, ...rest }) => ({
    ...rest,
    operationKey,
    budgetId,
  }));

const eventRow = z
  .object({ attempt_key: z.string().nullable(), kind: z.string(), at: micros })
  .transform(({ attempt_key: attemptKey, ...rest }) => ({ ...rest, attemptKey }));

const earlierRow = z
  .object({ budget_id: z.string(), amount: integer })
  .transform((row) => ({ budgetId: row.budget_id, amount: row.amount }));

const AT = (column: string): string => `(extract(epoch from ${column}) * 1000000)::bigint::text`;

const ENTRIES = `
  select posting_id::text, budget_period_id::text, budget_id, account, (direction * amount)::text as delta,
         ${AT('real_at')} as at
  from ledger.entry_view where entry_id > $1 order by entry_id`;
const POSTINGS = `
  select distinct posting_id::text, posting_kind as kind, operation_key || '-' || attempt_no as attempt_key
  from ledger.entry_view where entry_id > $1`;
const ATTEMPTS = 'select attempt_key, phase from ledger.attempt_view';
// What was refused before the run began is of another run.
const REFUSALS = `
  select operation_key, reason, budget_id, ${AT('last_real_at')} as at, numbers ->> 'neededAmount' as needed,
         numbers ->> 'availableAmount' as available, numbers ->> 'limitAmount' as limit
  from ledger.refusal_view
  where last_real_at > coalesce((select max(real_at) from ledger.entry_view where entry_id <= $1), '-infinity')`;
const EVENTS = `
  select operation_key || '-' || attempt_no as attempt_key, kind, ${AT('real_at')} as at
  from ledger.event_view order by real_at`;
const EARLIER = `
  select budget_id, sum(direction * amount)::text as amount from ledger.entry_view
  where entry_id <= $1 and account in ('held', 'captured') group by budget_id`;

export async function readJournal(client: ClientBase, range: JournalRange = {}): Promise<Journal> {
  const since = [(range.since ?? 0n).toString()];
  const read = async <T>(row: z.ZodType<T>, text: string, values: string[] = []): Promise<T[]> => {
    const { rows } = await client.query<QueryResultRow>(text, values);
    return z.array(row).parse(rows);
  };
  // One snapshot: an attempt that is stored while this reads must not be half there.
  await client.query('begin isolation level repeatable read read only');
  try {
    return {
      entries: await read(entryRow, ENTRIES, since),
      postings: await read(postingRow, POSTINGS, since),
      attempts: await read(attemptRow, ATTEMPTS),
      refusals: await read(refusalRow, REFUSALS, since),
      events: await read(eventRow, EVENTS),
      earlier: await read(earlierRow, EARLIER, since),
    };
  } finally {
    await client.query('commit');
  }
}
