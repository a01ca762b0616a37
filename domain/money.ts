// Money
// -----
// An amount is a whole number of the smallest unit of a budget's unit of account, never negative:
// nano-dollars for `usd` (1 USD = 1_000_000_000), whole credits for `credit`.
// Direction is said by the ledger entry that carries the amount, not by a sign.
// A scale is part of the stored data: changing one is a migration, not an edit.

declare const amountBrand: unique symbol;
declare const amountJsonBrand: unique symbol;

export type Amount = bigint & { readonly [amountBrand]: 'amount' };

/** Amounts cross process and Temporal boundaries as strings of digits: JSON has no bigint. */
export type AmountJson = string & { readonly [amountJsonBrand]: 'amount-json' };

/** Decimals that one unit of account has. */
export const SCALES = { usd: 9, credit: 0 } as const;
export type Unit = keyof typeof SCALES;
export const UNITS = Object.keys(SCALES) as Unit[];

/** The largest amount that the ledger's `bigint` columns can store: 2^63 - 1. */
export const AMOUNT_MAX = 9_223_372_036_854_775_807n;

const AMOUNT_TEXT = /^(0|[1-9]\d*)(?:\.(\d+))?$/;
const AMOUNT_JSON_TEXT = /^(0|[1-9]\d*)$/;

export function isUnit(value: unknown): value is Unit {
  return typeof value === 'string' && Object.hasOwn(SCALES, value);
}

/** Throws RangeError below zero and above 2^63 - 1. */
export function amount(value: bigint): Amount {
  if (value < 0n) throw new RangeError(`amount must not be negative, got ${value}`);
  if (value > AMOUNT_MAX)
    throw new RangeError(`amount must not exceed ${AMOUNT_MAX}, got ${value}`);
  return value as Amount;
}

/** Exact, or it throws RangeError: a decimal beyond the unit's scale is refused, not rounded away. */
export function parseAmount(text: string, unit: Unit): Amount {
  const [, whole, fraction = ''] = AMOUNT_TEXT.exec(text) ?? [];
  const scale = SCALES[unit];
  if (whole === undefined) {
    throw new RangeError(
      `not an amount in ${unit}: "${text}"; write digits, such as 40${scale > 0 ? ' or 0.25' : ''}`,
    );
  }
  if (fraction.length > scale) {
    throw new RangeError(
      `too many decimals for ${unit}: "${text}" has ${fraction.length}, at most ${scale} are exact`,
    );
  }
  return amount(BigInt(whole + fraction.padEnd(scale, '0')));
}

/** For people: `40 credit`, `0.25 usd`. The inverse of `parseAmount`, with the unit behind. */
export function formatAmount(value: bigint, unit: Unit): string {
  const scale = SCALES[unit];
  const sign = value < 0n ? '-' : '';
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '');
  return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`} ${unit}`;
}

export function encodeAmount(value: Amount): AmountJson {
  return value.toString() as AmountJson;
}

/** Throws RangeError for anything but the digits of an amount in its smallest unit. */
export function decodeAmount(text: string): Amount {
  if (!AMOUNT_JSON_TEXT.test(text)) {
    throw new RangeError(`not an amount in digits of the smallest unit: "${text}"`);
  }
  return amount(BigInt(text));
}
