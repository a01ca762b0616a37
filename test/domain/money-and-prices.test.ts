import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AMOUNT_MAX,
  amount,
  decodeAmount,
  encodeAmount,
  formatAmount,
  parseAmount,
} from '../../domain/money.js';
import { costRoundedUp, worstCaseRoundedUp } from '../../domain/price-book.js';
import { nextQuestionDelayMs } from '../../domain/lookup-schedule.js';

describe('money', () => {
  test('what is printed reads back as the same amount, in every unit', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, AMOUNT_MAX), fc.constantFrom('usd', 'credit'), (value, unit) => {
        const [text = ''] = formatAmount(value, unit).split(' ');
        expect(parseAmount(text, unit)).toBe(value);
        expect(decodeAmount(encodeAmount(amount(value)))).toBe(value);
      }),
    );
  });

  test('what is not exact is refused, not rounded', () => {
    for (const text of [
      '-1',
      '1.',
      '.5',
      '1e3',
      '0x1',
      '01',
      '',
      ' 1',
      'NaN',
      '1,000',
      '9223372036854775808',
    ]) {
      expect(() => parseAmount(text, 'credit'), text).toThrow(RangeError);
    }
    expect(() => parseAmount('0.5', 'credit')).toThrow('at most 0');
    expect(() => parseAmount('0.1234567891', 'usd')).toThrow('has 10, at most 9');
    expect(parseAmount('0.123456789', 'usd')).toBe(123_456_789n);
  });
});

describe('price book', () => {
  const rate = (dimension: string, rateAmount: bigint, perCount = 1_000_000n) => ({
    dimension,
    rateAmount: amount(rateAmount),
    perCount,
  });

  test('products are added exactly and rounded up once', () => {
    const rates = [rate('input_tokens', 1n), rate('output_tokens', 1n)];
    expect(costRoundedUp({ input_tokens: 1, output_tokens: 1 }, rates)).toEqual({
      status: 'priced',
      amount: 1n,
    });
    expect(costRoundedUp({ input_tokens: 500_000, output_tokens: 500_001 }, rates)).toEqual({
      status: 'priced',
      amount: 2n,
    });
  });

  test('a dimension without a rate is unpriced, and a rate without a bound is unbounded', () => {
    expect(costRoundedUp({ images: 1 }, [rate('input_tokens', 1n)])).toEqual({
      status: 'unpriced',
      dimension: 'images',
    });
    expect(
      worstCaseRoundedUp({ input_tokens: 1 }, [rate('input_tokens', 1n), rate('images', 1n)], 1),
    ).toEqual({
      status: 'unbounded',
      dimension: 'images',
    });
  });

  test('the worst case counts every paid attempt that one send can cause', () => {
    expect(worstCaseRoundedUp({ request: 1 }, [rate('request', 4n, 1n)], 3)).toEqual({
      status: 'priced',
      amount: 12n,
    });
  });
});

describe('lookup schedule', () => {
  test('intervals grow with age, stay under the longest, and are never none', () => {
    const schedule = { firstMs: 1_000, maxMs: 3_600_000 };
    fc.assert(
      fc.property(
        fc.nat(10 ** 9),
        fc.nat(10 ** 9),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (one, two, randomShare) => {
          const [young, old] = one < two ? [one, two] : [two, one];
          const delay = nextQuestionDelayMs(schedule, young, { randomShare });
          expect(delay).toBeGreaterThanOrEqual(1_000);
          expect(delay).toBeLessThanOrEqual(3_960_000);
          expect(nextQuestionDelayMs(schedule, old, { randomShare })).toBeGreaterThanOrEqual(delay);
        },
      ),
    );
    expect(nextQuestionDelayMs(schedule, 0, { randomShare: 0, retryAfterMs: 7_200_000 })).toBe(
      7_200_000,
    );
  });
});
