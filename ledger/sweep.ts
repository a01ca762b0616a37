// What a sweeper needs of the ledger: who is overdue, and the right to start a supervisor again.

import { z } from 'zod';
import type { OperationKind } from '../domain/identity.js';
import type { Unit } from '../domain/money.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import type { Ledger } from './connection.js';
import { decodeAnswer, snapshotAnswer } from './snapshot-row.js';

const OverdueRow = z.object({
  operation_key: z.string(),
  account_id: z.string(),
  operation_id: z.string(),
  kind: z.enum(['call', 'job']),
  workflow_id: z.string(),
  overdue_ms: z.string().transform(Number),
  held_amount: z.string().transform((text) => BigInt(text)),
  unit: z.enum(['usd', 'credit']),
});

export interface OverdueOperation {
  readonly operationKey: string;
  readonly accountId: string;
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly workflowId: string;
  readonly overdueMs: number;
  /** What its overdue attempts hold, in the smallest unit. */
  readonly heldAmount: bigint;
  readonly unit: Unit;
}

/** Open operations whose next question is overdue by more than the grace, the oldest first. */
export async function listOverdue(
  ledger: Ledger,
  limits: { readonly graceMs: number; readonly countMax: number },
): Promise<OverdueOperation[]> {
  const rows = await ledger.query({
    name: 'overdue_operations',
    text: 'select * from ledger.overdue_operations($1, $2)',
    values: [limits.graceMs, limits.countMax],
  });
  return decodeAnswer(z.array(OverdueRow), rows).map((row) => ({
    operationKey: row.operation_key,
    accountId: row.account_id,
    operationId: row.operation_id,
    kind: row.kind,
    workflowId: row.workflow_id,
    overdueMs: row.overdue_ms,
    heldAmount: row.held_amount,
    unit: row.unit,
  }));
}

export interface RestartClaim {
  readonly operationKey: string;
  readonly kind: 'supervisor_restarted' | 'supervisor_stuck';
  readonly why: string;
  readonly perMinute: number;
  /** After this a supervisor whose questions are still overdue may be started once more. */
  readonly againAfterMs: number;
}

export type ClaimAnswer =
  | { readonly status: 'claimed'; readonly snapshot: OperationSnapshot }
  | { readonly status: 'not_overdue' | 'claimed_before' | 'too_many' };

const claimAnswer = z.union([
  z.object({ status: z.literal('claimed'), snapshot: snapshotAnswer }),
  z.object({ status: z.enum(['not_overdue', 'claimed_before', 'too_many']) }),
]);

/** The right to start one supervisor again; taking it is an alert. */
export async function claimRestart(ledger: Ledger, claim: RestartClaim): Promise<ClaimAnswer> {
  const answer = await ledger.call('claim_restart', {
    operation_key: claim.operationKey,
    kind: claim.kind,
    why: claim.why,
    per_minute: claim.perMinute,
    again_after_ms: claim.againAfterMs,
  });
  return decodeAnswer(claimAnswer, answer);
}

/** Told once an operation: its supervisor is there, and somebody has paused it. */
export async function tellPaused(ledger: Ledger, operationKey: string): Promise<void> {
  await ledger.call('tell_paused', { operation_key: operationKey });
}
