// Literal facts for ledger tests: an account, a budget, a priced route, and short forms of the steps.

import { randomUUID } from 'node:crypto';
import { amount } from '../../domain/money.js';
import type { ObservationJson } from '../../domain/observation.js';
import type { RouteOffer } from '../../domain/route.js';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { createAccount, createBudget, setPrice } from '../../ledger/administer.js';
import { placeHold, type PlaceHoldAnswer, type PlaceHoldRequest } from '../../ledger/admit.js';
import { digestOf } from '../../ledger/bodies.js';
import type { Ledger } from '../../ledger/connection.js';
import { type FenceAnswer, type StepAnswer, takeFence } from '../../ledger/fence.js';
import { recordObservation } from '../../ledger/record.js';

export async function openBudget(
  ledger: Ledger,
  budget: { readonly budgetId: string; readonly accountId: string; readonly limit?: bigint },
): Promise<void> {
  await createAccount(ledger, { accountId: budget.accountId });
  await createBudget(ledger, {
    budgetId: budget.budgetId,
    unit: 'credit',
    ...(budget.limit !== undefined && { limitAmount: amount(budget.limit) }),
    scopes: [{ kind: 'account', value: budget.accountId }],
  });
}

export async function priceRoute(ledger: Ledger, route: string, perToken: bigint): Promise<void> {
  await setPrice(ledger, {
    route,
    unit: 'credit',
    rates: [
      { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
      { dimension: 'input_tokens', rateAmount: amount(0n), perCount: 1n },
      { dimension: 'output_tokens', rateAmount: amount(perToken), perCount: 1n },
    ],
  });
}

export function offer(route: string, outputTokens: number): RouteOffer {
  return {
    route,
    provider: 'metered',
    model: route,
    bound: { request: 1, input_tokens: 100, output_tokens: outputTokens },
    paidAttemptsPerSend: 1,
    timings: {
      dispatchLimitMs: 1_000,
      heartbeatMs: 1_000,
      dispatchBeforeMs: 600_000,
      questionFirstMs: 1_000,
      questionMaxMs: 60_000,
    },
  };
}

const REQUEST = '{"messages":[]}';

export function ask(
  operation: string,
  outputTokens: number,
  extra: Partial<PlaceHoldRequest> & { readonly routes?: readonly RouteOffer[] } = {},
): PlaceHoldRequest {
  const { routes, ...rest } = extra;
  return {
    account: 'acme',
    operation,
    kind: 'call',
    workflow: `call/acme/${operation}`,
    ask: 'ask-1',
    terms: { route: 'fake-priced', maxTokens: outputTokens },
    scopes: {},
    chain: {
      routes: routes ?? [offer('fake-priced', outputTokens)],
      fallbackWhileUnknown: 'wait',
      fallbackHold: 'each',
      sameRouteAttempts: 1,
    },
    requestDigest: digestOf(REQUEST),
    requestText: REQUEST,
    ...rest,
  };
}

/** Places a hold and answers its snapshot; throws when it was not placed. */
export async function placed(
  ledger: Ledger,
  request: PlaceHoldRequest,
): Promise<OperationSnapshot> {
  const answer = await placeHold(ledger, request);
  if (answer.status !== 'placed') throw new Error(`not placed: ${JSON.stringify(answer)}`);
  return answer.snapshot;
}

export const statusOf = (answer: PlaceHoldAnswer): string =>
  answer.status === 'refused' ? answer.refusal.reason : answer.status;

export function fence(
  ledger: Ledger,
  snapshot: OperationSnapshot,
  claim: string = randomUUID(),
): Promise<FenceAnswer> {
  return takeFence(ledger, {
    operationKey: snapshot.operationKey,
    attemptNo: snapshot.attempts.length,
    claim,
    ask: 'ask-1',
  });
}

export function observe(
  ledger: Ledger,
  snapshot: OperationSnapshot,
  observation: ObservationJson,
  extra: { attemptNo?: number; claim?: string; next?: RouteOffer } = {},
): Promise<StepAnswer> {
  const { attemptNo = snapshot.attempts.length, claim, next } = extra;
  return recordObservation(ledger, {
    operationKey: snapshot.operationKey,
    attemptNo,
    via: claim === undefined ? 'lookup' : 'dispatch',
    ask: 'ask-1',
    observation,
    ...(claim !== undefined && { claim }),
    ...(next !== undefined && { next }),
  });
}

const evidence = { source: 'lookup', reference: 'receipt-1' } as const;

export const charge = (
  total: string,
  usage: Record<string, number> = { output_tokens: 1 },
): ObservationJson => ({
  kind: 'charge',
  basis: 'final',
  amount: total as never,
  usage,
  evidence,
});
export const floor = (total: string): ObservationJson => ({
  kind: 'charge',
  basis: 'lower_bound',
  amount: total as never,
  evidence,
});
export const silence: ObservationJson = {
  kind: 'no_answer',
  reason: 'no_answer',
  detail: 'nothing came',
  evidence,
};
export const running: ObservationJson = { kind: 'status', status: 'running', evidence };
export const rejected: ObservationJson = {
  kind: 'not_accepted',
  proof: 'documented_rejection',
  detail: 'http 503',
  evidence: { source: 'response', reference: 'http 503' },
};
