import { creditsPattern, formatCredits, parseCredits } from './credits.js';
import type { Credits } from './credits.js';

export type Price = { readonly per: 'token' | 'request' | 'tick'; readonly rate: Credits };
export type PriceList = ReadonlyMap<string, Price>;
export type NamedPrice = { readonly model: string; readonly price: Price };

const defaultPrices: readonly string[] = [
  'fake-priced=1',
  'fake-direct=1',
  'fake-fallback=2',
  'fake-unpriced=4/request',
  'fake-job=1/tick',
];

const nouns = { token: 'completion token', request: 'request', tick: 'tick' } as const;

/** Reads `MODEL=N` (per completion token), `MODEL=N/request` (flat) or `MODEL=N/tick` (of a job). */
export function parsePrice(text: string): NamedPrice | undefined {
  const match = /^([^=\s]+)=([\d.]+)(?:\/(request|tick))?$/.exec(text);
  const [, model, rate, per = 'token'] = match ?? [];
  if (model === undefined || rate === undefined || !creditsPattern.test(rate)) return undefined;
  return { model, price: { per: per as Price['per'], rate: parseCredits(rate) } };
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

/** The price of a call: a model that is charged by the tick takes none. */
export function callPriceOf(prices: PriceList, model: string): Price | undefined {
  const price = prices.get(model);
  return price?.per === 'tick' ? undefined : price;
}

/** What a tick of a job costs: other models take no jobs. */
export function tickRateOf(prices: PriceList, model: string): Credits | undefined {
  const price = prices.get(model);
  return price?.per === 'tick' ? price.rate : undefined;
}

export function priceOf(price: Price, completionTokenCount: number): Credits {
  return price.per === 'request' ? price.rate : price.rate * BigInt(completionTokenCount);
}

export function describePrices(prices: PriceList): Record<string, string> {
  return Object.fromEntries(
    [...prices].map(([model, { per, rate }]) => [
      model,
      `${formatCredits(rate)} credit a ${nouns[per]}`,
    ]),
  );
}
