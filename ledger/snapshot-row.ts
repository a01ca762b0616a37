// Decoding of what the ledger's functions answer. A value the code does not know is a loud bug.

import { z } from 'zod';
import { HoldfastError } from '../domain/failure.js';
import { ALERT_KINDS } from '../domain/alert.js';
import { ATTEMPT_PHASES, CANCEL_STATES } from '../domain/operation.js';
import { EXECUTION_STATUSES } from '../domain/observation.js';
import { REFUSAL_REASONS, type Refusal } from '../domain/refusal.js';
import type { OperationSnapshot } from '../domain/snapshot.js';

const Digits = z.string().regex(/^\d+$/);
const SignedDigits = z.string().regex(/^-?\d+$/);
const UnitName = z.enum(['usd', 'credit']);

const RefusalRow = z.object({
  reason: z.enum(REFUSAL_REASONS),
  budgetId: z.string().optional(),
  unit: UnitName.optional(),
  neededAmount: Digits.optional(),
  limitAmount: Digits.optional(),
  availableAmount: SignedDigits.optional(),
  heldAmount: Digits.optional(),
  unknownAmount: Digits.optional(),
  capturedAmount: Digits.optional(),
  dimension: z.string().optional(),
  detail: z.string().optional(),
});

const Timings = z.object({
  dispatchLimitMs: z.number(),
  heartbeatMs: z.number(),
  dispatchBeforeMs: z.number(),
  questionFirstMs: z.number(),
  questionMaxMs: z.number(),
});

const AttemptRow = z.object({
  attemptNo: z.number().int(),
  attemptKey: z.string(),
  route: z.string(),
  provider: z.string(),
  phase: z.enum(ATTEMPT_PHASES),
  unit: UnitName,
  boundAmount: Digits,
  heldAmount: Digits,
  floorAmount: Digits,
  chargedAmount: Digits.nullable(),
  proof: z.string().nullable(),
  pricedBy: z.enum(['provider', 'price_book']).nullable(),
  reasons: z.array(z.object({ reason: z.string(), at: z.string() })),
  unknownSince: z.string().nullable(),
  unknownMs: z.number().nullable(),
  remoteId: z.string().nullable(),
  questionCount: z.number().int(),
  lastAnswer: z.string().nullable(),
  nextQuestionDueAt: z.string().nullable(),
  dueInMs: z.number().nullable(),
  dispatchBeforePassed: z.boolean(),
  sentMs: z.number().nullable(),
  timings: Timings,
});

export const OfferRow = z.object({
  route: z.string(),
  provider: z.string(),
  model: z.string(),
  bound: z.record(z.string(), z.number()),
  paidAttemptsPerSend: z.number().int(),
  timings: Timings,
});

const AlertRow = z.object({
  kind: z.enum(ALERT_KINDS),
  attemptNo: z.number().int().nullable(),
  at: z.string(),
  detail: z.record(z.string(), z.unknown()),
  isNew: z
    .boolean()
    .nullable()
    .transform((isNew) => isNew ?? false),
});

const SnapshotRow = z.object({
  operationKey: z.string(),
  accountId: z.string(),
  operationId: z.string(),
  kind: z.enum(['call', 'job']),
  taskId: z.string().nullable(),
  workflowId: z.string(),
  state: z.enum(['held', 'dispatched', 'unknown', 'settled', 'released']),
  outcome: z.enum(['settled', 'released', 'refused', 'stopped']).nullable(),
  cancel: z.enum(CANCEL_STATES),
  cancelSentCount: z.number().int(),
  cancelLastAnswer: z.string().nullable(),
  executionStatus: z.enum(EXECUTION_STATUSES),
  answerRef: z.string().nullable(),
  budgetIds: z.array(z.string()),
  chain: z.object({
    routes: z.array(OfferRow),
    fallbackWhileUnknown: z.enum(['wait', 'allow']),
    // Operations that were admitted before there was a choice.
    fallbackHold: z.enum(['each', 'upfront']).default('each'),
    sameRouteAttempts: z.number().int(),
  }),
  fallbackProblem: z.string().nullable(),
  attempts: z.array(AttemptRow),
  refusal: RefusalRow.nullable(),
  needsOperator: z.boolean(),
  alerts: z.array(AlertRow),
});

export function decodeAnswer<T>(schema: z.ZodType<T>, answer: unknown): T {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new HoldfastError('LEDGER_CONTRACT_BROKEN', z.prettifyError(parsed.error));
}

/** Digits are branded here, at the edge: the schema has checked their form. */
export const snapshotAnswer = SnapshotRow.transform(
  (row) => row as unknown as OperationSnapshot,
) as unknown as z.ZodType<OperationSnapshot>;
export const refusalAnswer = RefusalRow.transform(
  (row) => row as unknown as Refusal,
) as unknown as z.ZodType<Refusal>;
