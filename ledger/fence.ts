// The fence: who may send, and the ways back before a byte has left.

import { z } from 'zod';
import type { Evidence } from '../domain/observation.js';
import type { RouteOffer } from '../domain/route.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import type { Unit } from '../domain/money.js';
import type { Ledger } from './connection.js';
import { decodeAnswer, OfferRow, snapshotAnswer } from './snapshot-row.js';

export interface FenceRequest {
  readonly operationKey: string;
  readonly attemptNo: number;
  /** The sender's random claim, a UUID. Repeating the same claim is safe. */
  readonly claim: string;
  readonly ask: string;
}

export type FenceAnswer =
  | {
      readonly status: 'taken' | 'own';
      readonly offer: RouteOffer;
      readonly attemptKey: string;
      readonly unit: Unit;
      /** Null when the text was purged. */
      readonly requestText: string | null;
      /** What is left of the time to send, by the ledger's clock, in milliseconds. */
      readonly sendMsLeft: number;
    }
  | {
      readonly status: 'taken_by_other' | 'refused';
      readonly reason: string;
      readonly snapshot?: OperationSnapshot | undefined;
    }
  | { readonly status: 'ledger_untrusted' };

const fenceAnswer = z.union([
  z
    .object({
      status: z.enum(['taken', 'own']),
      offer: OfferRow,
      attempt_key: z.string(),
      unit: z.enum(['usd', 'credit']),
      request_text: z.string().nullable(),
      send_ms_left: z.number(),
    })
    .transform((row) => ({
      status: row.status,
      offer: row.offer,
      attemptKey: row.attempt_key,
      unit: row.unit,
      requestText: row.request_text,
      sendMsLeft: row.send_ms_left,
    })),
  z.object({
    status: z.enum(['taken_by_other', 'refused']),
    reason: z.string(),
    snapshot: snapshotAnswer.optional(),
  }),
  z.object({ status: z.literal('ledger_untrusted') }),
]);

export async function takeFence(ledger: Ledger, request: FenceRequest): Promise<FenceAnswer> {
  const answer = await ledger.call('take_fence', {
    operation_key: request.operationKey,
    attempt_no: request.attemptNo,
    claim: request.claim,
    ask: request.ask,
  });
  return decodeAnswer(fenceAnswer, answer);
}

/** `snapshot` is absent where the operation does not exist. */
export interface StepAnswer {
  readonly status: string;
  readonly snapshot?: OperationSnapshot | null | undefined;
}

export const stepAnswer = z.object({
  status: z.string(),
  snapshot: snapshotAnswer.nullish(),
});

export async function giveUp(
  ledger: Ledger,
  request: Omit<FenceRequest, 'ask'>,
): Promise<StepAnswer> {
  const answer = await ledger.call('give_up', {
    operation_key: request.operationKey,
    attempt_no: request.attemptNo,
    claim: request.claim,
  });
  return decodeAnswer(stepAnswer, answer);
}

export async function withdraw(
  ledger: Ledger,
  request: { readonly operationKey: string; readonly reason: string },
): Promise<StepAnswer> {
  const answer = await ledger.call('withdraw', {
    operation_key: request.operationKey,
    reason: request.reason,
  });
  return decodeAnswer(stepAnswer, answer);
}

export interface EndAskRequest {
  readonly account: string;
  readonly operation: string;
  readonly ask: string;
  readonly reason: string;
  readonly claim?: string;
}

/** Ends an ask, also where no operation exists yet: a placement may still be on its way. */
export async function endAsk(ledger: Ledger, request: EndAskRequest): Promise<StepAnswer> {
  return decodeAnswer(stepAnswer, await ledger.call('end_ask', request));
}

export interface CancelRequest {
  readonly operationKey: string;
  readonly by: string;
  readonly reason?: string;
  readonly requestId?: string;
  /** Whether the provider can be asked to stop. */
  readonly isSupported: boolean;
}

export async function requestCancel(ledger: Ledger, request: CancelRequest): Promise<StepAnswer> {
  const answer = await ledger.call('request_cancel', {
    operation_key: request.operationKey,
    by: request.by,
    reason: request.reason,
    request_id: request.requestId,
    is_supported: request.isSupported,
  });
  return decodeAnswer(stepAnswer, answer);
}

export interface CancelAnswered {
  readonly operationKey: string;
  readonly attemptNo: number;
  readonly answer: 'acknowledged' | 'refused' | 'unsupported' | 'no_answer';
  readonly detail: string;
  readonly evidence: Evidence;
}

/** What the provider answered to the wish; none of it says that the work has ended. */
export async function recordCancelAnswer(
  ledger: Ledger,
  request: CancelAnswered,
): Promise<StepAnswer> {
  const answer = await ledger.call('record_cancel_answer', {
    operation_key: request.operationKey,
    attempt_no: request.attemptNo,
    answer: request.answer,
    detail: request.detail,
    evidence: request.evidence,
  });
  return decodeAnswer(stepAnswer, answer);
}
