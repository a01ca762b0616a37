import { creditsPattern, formatCredits, parseCredits } from './credits.js';
import type { Credits } from './credits.js';

export type Price = { readonly per: 'token' | 'request'; readonly rate: Credits };
export type PriceList = ReadonlyMap<string, Price>;
export type NamedPrice = { readonly model: string; readonly price: Price };

const defaultPrices: readonly string[] = [
  'fake-priced=1',
  'fake-direct=1',
  'fake-fallback=2',
  'fake-unpriced=4/request',
];

/** Reads `MODEL=N` (per completion token) or `MODEL=N/request` (flat). */
export function parsePrice(text: string): NamedPrice | undefined {
  const match = /^([^=\s]+)=([\d.]+)(\/request)?$/.exec(text);
  const [, model, rate, flat] = match ?? [];
  if (model === undefined || rate === undefined || !creditsPattern.test(rate)) return undefined;
  return {
    model,
    price: { per: flat === undefined ? 'token' : 'request', rate: parseCredits(rate) },
  };
}

/** The default list with `overrides` laid over it; a new model may be added the same way. */
export function createPriceList(overrides: readonly string[] = []): PriceList {
  const prices = new Map<string, Price>();
  for (const text of [...defaultPrices, ...overrides]) {
    const named = parsePrice(text);
    if (named === undefined) throw new RangeError(`"${text}" is not a price.`);
    prices.set(named.model, named.price);
  }
  return prices;
}

export function priceOf(price: Price, completionTokenCount: number): Credits {
  return price.per === 'request' ? price.rate : price.rate * BigInt(completionTokenCount);
}

export function describePrices(prices: PriceList): Record<string, string> {
  return Object.fromEntries(
    [...prices].map(([model, { per, rate }]) => [
      model,
      `${formatCredits(rate)} credit a ${per === 'token' ? 'completion token' : 'request'}`,
    ]),
  );
}
