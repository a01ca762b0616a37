// From the figures of a file to exact amounts.

import { type Amount, amount, formatAmount, SCALES, type Unit } from '../../domain/money.js';
import { evaluate, isFormula } from '../language/formula.js';
import type { Scenario } from '../language/scenario.js';
import type { FigureText } from '../language/words.js';

export type Numbers = Scenario['numbers'];

/** In the smallest unit; negative where a figure may be, such as `available` after an overrun. */
export function toAmount(text: FigureText, unit: Unit, numbers: Numbers): bigint {
  const scale = 10n ** BigInt(SCALES[unit]);
  if (isFormula(text)) return evaluate(text, numbers) * scale;
  if (typeof text === 'number') return BigInt(text) * scale;
  const isNegative = text.startsWith('-');
  const [whole = '', fraction = ''] = text.replace(/^-/, '').split('.');
  if (!/^\d+$/.test(whole) || !/^\d*$/.test(fraction) || fraction.length > SCALES[unit]) {
    throw new RangeError(`"${text}" is no exact amount in ${unit}`);
  }
  const units = BigInt(whole) * scale + BigInt(fraction.padEnd(SCALES[unit], '0') || '0');
  return isNegative ? -units : units;
}

export function toPositive(text: FigureText, unit: Unit, numbers: Numbers): Amount {
  return amount(toAmount(text, unit, numbers));
}

/** A whole number that is no money, such as a count of tokens. */
export function toCount(text: FigureText, numbers: Numbers): number {
  return Number(toAmount(text, 'credit', numbers));
}

/** As a file would write it: digits, with a point where the unit has decimals. */
export function sayAmount(value: bigint, unit: Unit): string {
  return formatAmount(value, unit).split(' ')[0] ?? '';
}
