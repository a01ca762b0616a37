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
  };
}
