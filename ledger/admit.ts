// Admission: places the hold of a first attempt, or of the next one.

import { z } from 'zod';
import type { OperationKind } from '../domain/identity.js';
import type { Refusal } from '../domain/refusal.js';
import type { Chain, RouteOffer } from '../domain/route.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import type { Ledger } from './connection.js';
import { decodeAnswer, refusalAnswer, snapshotAnswer } from './snapshot-row.js';

export interface PlaceHoldRequest {
  readonly account: string;
  readonly operation: string;
  readonly kind: OperationKind;
  readonly workflow: string;
  readonly ask: string;
  /** What the caller asked for; the same id with other terms is `key_reused`. */
  readonly terms: Readonly<Record<string, unknown>>;
  readonly scopes: {
    readonly tags?: readonly string[];
    readonly endUser?: string;
    readonly taskId?: string;
  };
  readonly chain: Chain;
  readonly requestDigest: string;
  readonly requestText?: string;
}

export type PlaceHoldAnswer =
  | { readonly status: 'placed' | 'exists' | 'closed'; readonly snapshot: OperationSnapshot }
  | { readonly status: 'refused'; readonly refusal: Refusal }
  | { readonly status: 'ask_ended' | 'ledger_untrusted' };

const placeHoldAnswer = z.union([
  z.object({ status: z.enum(['placed', 'exists', 'closed']), snapshot: snapshotAnswer }),
  z.object({ status: z.literal('refused'), refusal: refusalAnswer }),
  z.object({ status: z.enum(['ask_ended', 'ledger_untrusted']) }),
]);

/** Holds the worst case of the chain's first route on every budget of the request, or on none. */
export async function placeHold(
  ledger: Ledger,
  request: PlaceHoldRequest,
): Promise<PlaceHoldAnswer> {
  const { requestDigest, requestText, ...rest } = request;
  const answer = await ledger.call('place_hold', {
    ...rest,
    request_digest: requestDigest,
    request_text: requestText,
  });
  return decodeAnswer(placeHoldAnswer, answer);
}

export interface NextAttemptRequest {
  readonly operationKey: string;
  readonly afterAttempt: number;
  readonly offer: RouteOffer;
  readonly ask: string;
}

export type NextAttemptAnswer =
  | { readonly status: 'placed' | 'refused'; readonly snapshot: OperationSnapshot }
  | { readonly status: 'ledger_untrusted' };

const nextAttemptAnswer = z.union([
  z.object({ status: z.enum(['placed', 'refused']), snapshot: snapshotAnswer }),
  z.object({ status: z.literal('ledger_untrusted') }),
]);

export async function nextAttempt(
  ledger: Ledger,
  request: NextAttemptRequest,
): Promise<NextAttemptAnswer> {
  const answer = await ledger.call('next_attempt', {
    operation_key: request.operationKey,
    after_attempt: request.afterAttempt,
    offer: request.offer,
    ask: request.ask,
  });
  return decodeAnswer(nextAttemptAnswer, answer);
}

export type TermsAnswer =
  | { readonly status: 'same'; readonly snapshot: OperationSnapshot }
  | { readonly status: 'other'; readonly refusal: Refusal }
  | { readonly status: 'not_found' };

const termsAnswer = z.union([
  z.object({ status: z.literal('same'), snapshot: snapshotAnswer }),
  z.object({ status: z.literal('other'), refusal: refusalAnswer }),
  z.object({ status: z.literal('not_found') }),
]);

/** Whether the stored operation of an id is the one that is asked for; it admits nothing. */
export async function compareTerms(
  ledger: Ledger,
  request: Pick<PlaceHoldRequest, 'account' | 'operation' | 'terms'>,
): Promise<TermsAnswer> {
  return decodeAnswer(termsAnswer, await ledger.call('compare_terms', request));
}
