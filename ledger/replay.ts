// Replay: what repeating an attempt under its key takes, and whether that may be done now.

import { z } from 'zod';
import type { Unit } from '../domain/money.js';
import type { RouteOffer } from '../domain/route.js';
import type { Ledger } from './connection.js';
import { decodeAnswer, OfferRow } from './snapshot-row.js';

export interface ReplayRequest {
  readonly operationKey: string;
  readonly attemptNo: number;
  /** For how long the provider documents that it knows a key; half of it is used. */
  readonly windowMs: number;
}

export type ReplayTerms =
  | {
      readonly status: 'permitted';
      readonly offer: RouteOffer;
      readonly attemptKey: string;
      readonly unit: Unit;
      readonly requestText: string;
    }
  | { readonly status: 'refused'; readonly reason: string }
  | { readonly status: 'ledger_untrusted' };

const replayAnswer = z.union([
  z
    .object({
      status: z.literal('permitted'),
      offer: OfferRow,
      attempt_key: z.string(),
      unit: z.enum(['usd', 'credit']),
      request_text: z.string(),
    })
    .transform(({ attempt_key: attemptKey, request_text: requestText, ...row }) => ({
      ...row,
      attemptKey,
      requestText,
    })),
  z.object({ status: z.literal('refused'), reason: z.string() }),
  z.object({ status: z.literal('ledger_untrusted') }),
]);

/** From `permitted` on, the ledger takes no proof any more that the attempt was never sent. */
export async function replayTerms(ledger: Ledger, request: ReplayRequest): Promise<ReplayTerms> {
  const answer = await ledger.call('replay_terms', {
    operation_key: request.operationKey,
    attempt_no: request.attemptNo,
    window_ms: request.windowMs,
  });
  return decodeAnswer(replayAnswer, answer);
}
