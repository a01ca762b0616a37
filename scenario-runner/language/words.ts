// Words
// -----
// The small forms that the words of a scenario are made of: names, exact figures, durations.

import { z } from 'zod';

const NAME = /^[a-z0-9][a-z0-9._-]{0,59}$/;
const DURATION = /^(\d+) ?(ms|s|m|h|d)$/;
const MS_PER: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

export const name = z.string({ error: 'give a name' }).regex(NAME, {
  error: 'give 1 to 60 of a-z, 0-9, dot, dash and underscore, the first a letter or a digit',
});

const FIGURE_RULE =
  'give a whole number, or text in quotes such as "0.25" or "= limit - 40": figures are exact';
const FIGURE = /^(=.*|\d+(\.\d+)?)$/;
const SIGNED_FIGURE = /^(=.*|-?\d+(\.\d+)?)$/;
const WHOLE_RULE = 'give a whole number, or a formula in quotes such as "= limit - 40"';

/**
 * A whole number, a decimal in quotes, or a formula in quotes such as `"= limit - 2 * cost"`. A YAML
 * float is refused: it is not exact.
 */
export const figure = z
  .union([z.int().nonnegative(), z.string().regex(FIGURE, FIGURE_RULE)], { error: FIGURE_RULE })
  .describe('A whole number, a decimal in quotes, or a formula such as "= limit - 2 * price".');
export type FigureText = z.infer<typeof figure>;

/** What can be below zero, such as the room of a budget after an overrun. */
export const signedFigure = z
  .union([z.int(), z.string().regex(SIGNED_FIGURE, FIGURE_RULE)], { error: FIGURE_RULE })
  .describe('A figure that can be below zero.');

/** A count, or credits, which have no decimals. */
export const wholeFigure = z
  .union([z.int().nonnegative(), z.string().regex(/^(=.*|\d+)$/, WHOLE_RULE)], {
    error: WHOLE_RULE,
  })
  .describe('A whole number, or a formula such as "= 2 * price".');

export const count = z.int({ error: 'give a whole number' }).nonnegative({
  error: 'give a whole number, 0 or more',
});

const DURATION_RULE = 'give a duration such as "9d", "15m", "3s" or "200ms"';

/** `9d`, `15 m`, `1500ms`; a bare whole number is milliseconds. */
export const duration = z
  .union([z.int().nonnegative(), z.string().regex(DURATION, DURATION_RULE)], {
    error: DURATION_RULE,
  })
  .describe('A duration such as 9d, 15m, 3s or 200ms; a bare whole number is milliseconds.')
  .transform((text) => {
    const [, amount, unit] = DURATION.exec(String(text)) ?? [];
    return amount === undefined ? Number(text) : Number(amount) * (MS_PER[unit ?? 'ms'] ?? 1);
  });
