// Reading: the views, decoded. `bigint` columns arrive as text and become `bigint` here.

import { z } from 'zod';
import { type Unit, UNITS } from '../domain/money.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import type { Ledger } from './connection.js';
import { decodeAnswer, refusalAnswer, snapshotAnswer } from './snapshot-row.js';

const Whole = z.string().transform((text) => BigInt(text));
const UnitName = z.enum(UNITS as [Unit, ...Unit[]]);

const BudgetRow = z.object({
  budget_id: z.string(),
  unit: UnitName,
  limit_amount: Whole.nullable(),
  captured_amount: Whole,
  held_amount: Whole,
  unknown_amount: Whole,
  unknown_count: z.number(),
  unknown_oldest: z.date().nullable(),
  overrun_amount: Whole,
  /** Null for a budget without a limit; negative after an overrun. */
  available_amount: Whole.nullable(),
  frozen_at: z.date().nullable(),
  scopes: z.array(z.object({ kind: z.string(), value: z.string() })),
});
export type BudgetBalance = z.infer<typeof BudgetRow>;

const OperationRow = z.object({
  operation_key: z.string(),
  account_id: z.string(),
  operation_id: z.string(),
  kind: z.enum(['call', 'job']),
  workflow_id: z.string(),
  task_id: z.string().nullable(),
  state: z.string(),
  outcome: z.string().nullable(),
  cancel: z.string(),
  execution_status: z.string(),
  route: z.string(),
  provider: z.string(),
  unit: UnitName,
  attempt_count: z.number(),
  held_amount: Whole,
  /** Null until a charge is confirmed; null is not zero. */
  charged_amount: Whole.nullable(),
  unknown_since: z.date().nullable(),
  next_question_due_at: z.date().nullable(),
  remote_id: z.string().nullable(),
  last_answer: z.string().nullable(),
  needs_operator: z.boolean(),
  created_at: z.date(),
  closed_at: z.date().nullable(),
  answer_digest: z.string().nullable(),
  read_at: z.date(),
});
export type OperationRow = z.infer<typeof OperationRow>;

const EventRow = z.object({
  event_no: z.string(),
  kind: z.string(),
  from_state: z.string(),
  to_state: z.string(),
  attempt_no: z.number().nullable(),
  detail: z.record(z.string(), z.unknown()),
  recorded_at: z.date(),
  evidence_source: z.string().nullable(),
  evidence_reference: z.string().nullable(),
});
export type OperationEvent = z.infer<typeof EventRow>;

const RefusalRow = z.object({
  account_id: z.string(),
  operation_id: z.string(),
  route: z.string(),
  reason: z.string(),
  numbers: refusalAnswer,
  refusal_count: z.number(),
  last_at: z.date(),
});
export type RefusalRow = z.infer<typeof RefusalRow>;

const ProblemRow = z.object({ problem: z.string(), subject: z.string(), detail: z.string() });
/** One broken rule of conservation. */
export type BookProblem = z.infer<typeof ProblemRow>;

const IdentityRow = z.object({
  ledger_id: z.string(),
  is_test: z.boolean(),
  is_trusted: z.boolean(),
});
export type LedgerIdentity = z.infer<typeof IdentityRow>;

export async function readBudgets(ledger: Ledger): Promise<BudgetBalance[]> {
  const rows = await ledger.query({
    name: 'read_budgets',
    text: 'select * from ledger.budget_view order by budget_id',
  });
  return decodeAnswer(z.array(BudgetRow), rows);
}

export async function readBudget(
  ledger: Ledger,
  budgetId: string,
): Promise<BudgetBalance | undefined> {
  const rows = await ledger.query({
    name: 'read_budget',
    text: 'select * from ledger.budget_view where budget_id = $1',
    values: [budgetId],
  });
  return decodeAnswer(z.array(BudgetRow), rows)[0];
}

/** Where an operation stands; undefined when the ledger has none of that id. */
export async function readOperation(
  ledger: Ledger,
  id: { readonly accountId: string; readonly operationId: string },
): Promise<OperationSnapshot | undefined> {
  const rows = await ledger.query({
    name: 'read_operation',
    text: 'select ledger.read_operation($1, $2) as answer',
    values: [id.accountId, id.operationId],
  });
  return decodeAnswer(snapshotAnswer.nullable(), rows[0]?.['answer'] ?? null) ?? undefined;
}

/** The same, by the ledger's own key. */
export async function readOperationByKey(
  ledger: Ledger,
  operationKey: string,
): Promise<OperationSnapshot | undefined> {
  const rows = await ledger.query({
    name: 'read_operation_by_key',
    text: 'select ledger.snapshot($1) as answer',
    values: [operationKey],
  });
  return decodeAnswer(snapshotAnswer.nullable(), rows[0]?.['answer'] ?? null) ?? undefined;
}

export interface OperationFilter {
  readonly state?: string;
  /** A caller's operation id, an operation key, or a workflow id. */
  readonly id?: string;
  readonly accountId?: string;
  readonly taskId?: string;
  /** Unknown for longer than this, or, where nothing is unknown, admitted longer ago; in milliseconds. */
  readonly olderThanMs?: number;
  readonly isOpen?: boolean;
  readonly needsOperator?: boolean;
  readonly countMax: number;
}

export async function listOperations(
  ledger: Ledger,
  filter: OperationFilter,
): Promise<OperationRow[]> {
  const rows = await ledger.query({
    name: 'list_operations',
    text: `select * from ledger.operation_view
           where ($1::text is null or state = $1)
             and ($2::text is null or operation_id = $2 or operation_key = $2 or workflow_id = $2)
             and ($4::text is null or account_id = $4)
             and ($5::text is null or task_id = $5)
             and ($6::bigint is null
                  or coalesce(unknown_since, created_at) <= read_at - $6::bigint * interval '1 millisecond')
             and ($7::boolean is null or (closed_at is null) = $7)
             and ($8::boolean is null or needs_operator = $8)
           order by created_at desc limit $3`,
    values: [
      filter.state ?? null,
      filter.id ?? null,
      filter.countMax,
      filter.accountId ?? null,
      filter.taskId ?? null,
      filter.olderThanMs ?? null,
      filter.isOpen ?? null,
      filter.needsOperator ?? null,
    ],
  });
  return decodeAnswer(z.array(OperationRow), rows);
}

export async function readTimeline(
  ledger: Ledger,
  operationKey: string,
): Promise<OperationEvent[]> {
  const rows = await ledger.query({
    name: 'read_timeline',
    text: 'select * from ledger.event_view where operation_key = $1 order by event_no',
    values: [operationKey],
  });
  return decodeAnswer(z.array(EventRow), rows);
}

export async function readRefusals(ledger: Ledger, operationId: string): Promise<RefusalRow[]> {
  const rows = await ledger.query({
    name: 'read_refusals',
    text: 'select * from ledger.refusal_view where operation_id = $1 order by last_at desc',
    values: [operationId],
  });
  return decodeAnswer(z.array(RefusalRow), rows);
}

/** The conservation check: no row when the books are whole. */
export async function checkBooks(ledger: Ledger): Promise<BookProblem[]> {
  const rows = await ledger.query({ name: 'check', text: 'select * from ledger.check()' });
  return decodeAnswer(z.array(ProblemRow), rows);
}

export async function readIdentity(ledger: Ledger): Promise<LedgerIdentity | undefined> {
  const rows = await ledger.query({
    name: 'identity',
    text: 'select ledger_id::text, is_test, is_trusted from ledger.identity_view',
  });
  return decodeAnswer(z.array(IdentityRow), rows)[0];
}
