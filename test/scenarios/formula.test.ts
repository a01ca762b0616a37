import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { evaluate, isFormula } from '../../scenario-runner/language/formula.js';

const numbers = { price: 3, limit: 100, a_1: -7 };

describe('a formula', () => {
  test.each([
    ['= 4', 4n],
    ['=4', 4n],
    ['=  4  ', 4n],
    ['= limit', 100n],
    ['= a_1', -7n],
    ['= -price', -3n],
    ['= --price', 3n],
    ['= limit - 2 * 40 * price', -140n],
    ['= 2 + 3 * 4', 14n],
    ['= (2 + 3) * 4', 20n],
    ['= 10 - 3 - 2', 5n],
    ['= 10 - (3 - 2)', 9n],
    ['= 2 * -price', -6n],
    ['= 9007199254740993 * 9007199254740993', 81129638414606699710187514626049n],
    [`= ${'('.repeat(200)}1${')'.repeat(200)}`, 1n],
  ])('%s', (formula, expected) => {
    expect(evaluate(formula, numbers)).toBe(expected);
  });

  test('is as exact as whole numbers are', () => {
    const whole = fc.bigInt({ min: 0n, max: 2n ** 70n });
    fc.assert(
      fc.property(whole, whole, whole, (a, b, c) => {
        expect(evaluate(`= ${a} - ${b} * (${c} + ${a})`, {})).toBe(a - b * (c + a));
      }),
    );
  });

  test('never throws anything but its own sentence', () => {
    const piece = fc.constantFrom(
      '(',
      ')',
      '+',
      '-',
      '*',
      '/',
      ' ',
      '7',
      'price',
      'x',
      '.',
      '=',
      'é',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 600 }), (pieces) => {
        const formula = `=${pieces.join('')}`;
        try {
          expect(typeof evaluate(formula, numbers)).toBe('bigint');
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
          expect((error as RangeError).message).toMatch(/^the formula "=/);
        }
      }),
    );
  });

  test.each([
    ['= toString', 'cannot be read from "String" on'],
    ['= constructor', 'names "constructor"; known are price, limit, a_1'],
    ['= hasOwn()', 'cannot be read from "Own()" on'],
    ['= 0x10', 'goes on after its end with "x10"'],
    ['= 1.5', 'cannot be read from ".5" on'],
    ['= )', 'has ")" where a number should stand'],
    ['= * 2', 'has "*" where a number should stand'],
    [`= ${'1'.repeat(499)}`, 'is 501 characters long; at most are 500'],
  ])('%s is refused', (formula, message) => {
    expect(() => evaluate(formula, numbers)).toThrow(message);
  });

  test('without numbers says so', () => {
    expect(() => evaluate('= price', {})).toThrow('names "price"; known are none');
  });

  test.each([
    ['= 1', true],
    ['=', true],
    ['1 = 1', false],
    [' = 1', false],
    [1, false],
    [null, false],
  ])('%j: whether it is one', (value, expected) => {
    expect(isFormula(value)).toBe(expected);
  });
});
