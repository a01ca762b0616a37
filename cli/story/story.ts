// The story
// ---------
// Three acts on the real parts. Every figure is read at print time from the provider's own truth or
// from a view of the ledger; what is expected follows from the price and the limit.

import { type Amount, amount } from '../../domain/money.js';
import { setPrice } from '../../ledger/administer.js';
import type { Figure } from './figures.js';
import { playForty } from './act-1-forty-credits.js';
import { playKill } from './act-2-kill.js';
import { playLightsOut } from './act-3-lights-out.js';
import {
  MAX_TOKENS,
  PATIENT_ROUTE,
  STORY_ROUTE,
  type StoryOptions,
  type StoryProps,
} from './props.js';

/** Throws RangeError when the numbers tell no story: exactly two worst cases must fit. */
export function worstCaseFor(price: number, limit: bigint): Amount {
  const worstCase = amount(BigInt(price) * BigInt(MAX_TOKENS));
  if (price < 1 || worstCase * 2n > limit || worstCase * 3n <= limit) {
    throw new RangeError(
      `price ${price} and limit ${limit} tell no story: two calls of ${worstCase} must fit and three must not`,
    );
  }
  return worstCase;
}

export async function tellStory(options: StoryOptions): Promise<readonly Figure[]> {
  const props: StoryProps = {
    ...options,
    worstCase: worstCaseFor(options.price, options.limit),
  };
  for (const route of [STORY_ROUTE, PATIENT_ROUTE]) {
    await setPrice(options.stage.ledger, {
      route,
      unit: 'credit',
      rates: [
        { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'input_tokens', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'output_tokens', rateAmount: amount(BigInt(options.price)), perCount: 1n },
      ],
    });
  }
  await playForty(props);
  await playKill(props);
  await playLightsOut(props);
  return options.sheet.figures;
}
