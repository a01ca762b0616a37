import { describePrices } from '../book/prices.js';
import type { PriceList } from '../book/prices.js';

/** What the provider says of itself at `GET /`: the part of its contract that can be relied on. */
export function documentContract(prices: PriceList): object {
  return {
    name: 'simulated provider',
    unit: 'credit',
    prices: describePrices(prices),
    create: 'POST /v1/chat/completions',
    lookups: ['GET /v1/receipts/by-key/:key', 'GET /v1/receipts/:id'],
    refusals: [
      { status: 401, meaning: 'refused before work', charged: false },
      { status: 503, meaning: 'refused before work', charged: false },
    ],
    idempotency: {
      header: 'Idempotency-Key',
      same_body: 'the stored answer, with the header idempotency-replayed: true',
      kept_for_hours: 24,
      still_running: 409,
      other_body: 422,
    },
    jobs: {
      create: 'POST /v1/jobs',
      bound: 'limit.ticks: a job ends when it has had so many, and each is charged',
      statuses: ['GET /v1/jobs/by-key/:key', 'GET /v1/jobs/:id'],
      charges: ['GET /v1/jobs/by-key/:key/charge', 'GET /v1/jobs/:id/charge'],
      charge_is_final: 'when it says final: true; until then it is a lower bound',
      idempotency: {
        same_body: 'the stored job with 200, and with the header idempotency-replayed: true',
        kept_for_hours: 24,
        other_body: 422,
      },
      cancel: 'POST /v1/jobs/:id/cancel',
      cancel_answers: [
        { status: 200, meaning: 'stopped' },
        { status: 202, meaning: 'asked to stop: it may still run to its limit' },
        { status: 409, code: 'already_ended', meaning: 'it has ended before' },
        { status: 409, code: 'not_cancellable', meaning: 'it goes on' },
        { status: 405, code: 'cancel_unsupported', meaning: 'no job can be stopped' },
      ],
    },
  };
}
