import { describe, expect, test } from 'vitest';
import { readScenario } from '../../scenario-runner/language/read-scenario.js';
import {
  complaint,
  complaintOf,
  GOOD,
  withExpect,
  withLimit,
  withNumbers,
  withRule,
  withStep,
} from './small-scenario.js';

const FIGURE =
  'give a whole number, or text in quotes such as "0.25" or "= limit - 40": figures are exact';
const LIMIT = 'give a whole number, a decimal or formula in quotes, or none';
const FLOAT = 'is a float; figures are exact: give a whole number, or a decimal in quotes';

describe('an unknown word is told with its line and the nearest known one', () => {
  test.each([
    [
      'at the top',
      `${GOOD}expekt: 1\n`,
      '9: expekt: unknown word; the nearest known word is "expect"',
    ],
    [
      'in given',
      GOOD.replace('  budgets:', '  rutes: {}\n  budgets:'),
      '4: given.rutes: unknown word; the nearest known word is "routes"',
    ],
    [
      'in a budget',
      withLimit('10, scops: []'),
      '5: given.budgets.b.scops: unknown word; the nearest known word is "scopes"',
    ],
    [
      'as a step',
      withStep('{ max_tokens: 4, cal: a }'),
      '7: steps.0.cal: unknown word; the nearest known word is "call"',
    ],
    [
      'in a step',
      withStep('{ call: a, rout: fake-direct }'),
      '7: steps.0.rout: unknown word; the nearest known word is "route"',
    ],
    [
      'in a call that is together with others',
      withStep('{ together: [{ call: a, rout: fake-direct }, { call: b }] }'),
      '7: steps.0.together.0.rout: unknown word; the nearest known word is "route"',
    ],
    [
      'in expect',
      withExpect('{ admited: 1 }'),
      '8: expect.admited: unknown word; the nearest known word is "admitted"',
    ],
    [
      'in the figures of a budget',
      withExpect('{ budgets: { b: { cptured: 1 } } }'),
      '8: expect.budgets.b.cptured: unknown word; the nearest known word is "captured"',
    ],
    [
      'in an expect between steps',
      withStep('{ expect: { calls: { a: { stat: held } } } }'),
      '7: steps.0.expect.calls.a.stat: unknown word; the nearest known word is "state"',
    ],
    [
      'in a provider rule',
      withRule('{ mach: {}, do: {} }'),
      '7: given.provider.0.mach: unknown word; the nearest known word is "match"',
    ],
    [
      'in do',
      withRule('{ do: { answr: now } }'),
      '7: given.provider.0.do.answr: unknown word; the nearest known word is "answer"',
    ],
    [
      'in the lookup of a provider step',
      withStep('{ provider: { do: { lookup: { find: never } } } }'),
      '7: steps.0.provider.do.lookup.find: unknown word; the nearest known word is "finds"',
    ],
    [
      'as a value of do',
      withRule('{ do: { answer: nw } }'),
      '7: given.provider.0.do.answer: unknown word "nw"; the nearest known word is "now"; known are now, late, never',
    ],
    [
      'as a value of a step',
      withStep('{ kill: worker }'),
      '7: steps.0.kill: unknown word "worker"; the nearest known word is "workers"; known are workers',
    ],
    ['that JavaScript knows', GOOD.replace('b: {', '__proto__: {'), '5: unknown word "__proto__"'],
    [
      'that every object has',
      `${GOOD}constructor: 1\n`,
      '9: constructor: unknown word; the nearest known word is "scenario"',
    ],
  ])('%s', (_where, text, message) => {
    expect(complaint(text)).toBe(`f.yaml:${message}`);
  });

  test('two words in one step are two steps', () => {
    expect(complaint(withStep('{ call: a, kill: workers }'))).toBe(
      'f.yaml:7: steps.0.kill: a step has one word, and this one has "call" already; make it a step of its own',
    );
  });

  test('all that is wrong is told at once, in the order of the lines', () => {
    const text = withStep('{ call: a, rout: b }').replace('limit: 10', 'limit: ten');
    expect(
      complaint(text)
        .split('\n')
        .map((line) => line.split(':')[1]),
    ).toEqual(['5', '7']);
  });
});

describe('a file that expects nothing never passes', () => {
  const nothing = 'expects nothing; name at least one figure';
  test.each([
    [
      'no expect',
      GOOD.replace(/expect:.*\n/, ''),
      '1: expects nothing: it would pass whatever happens; add `expect`',
    ],
    ['an empty mapping', withExpect('{}'), `8: expect: ${nothing}`],
    ['no value', withExpect(''), '8: expect: is empty; give a mapping'],
    ['a list', withExpect('[]'), '8: expect: is a list of 0; give a mapping'],
    [
      'a call without a figure',
      withExpect('{ calls: { a: {} } }'),
      `8: expect.calls.a: ${nothing}`,
    ],
    [
      'a call without a figure beside a figure',
      withExpect('{ admitted: 1, calls: { a: {} } }'),
      `8: expect.calls.a: ${nothing}`,
    ],
    [
      'no reasons',
      withExpect('{ calls: { a: { reasons: [] } } }'),
      `8: expect.calls.a.reasons: ${nothing}`,
    ],
    ['an empty step', withStep('{ expect: {} }'), `7: steps.0.expect: ${nothing}`],
    [
      'an excess between steps',
      withStep('{ expect: { excess: 3 } }'),
      "7: steps.0.expect.excess: is judged over the whole run; give it in the file's own expect",
    ],
  ])('%s', (_what, text, message) => {
    expect(complaint(text)).toBe(`f.yaml:${message}`);
  });
});

describe('a figure is exact', () => {
  test.each([
    ['1.5', `1.5 ${FLOAT}`],
    ['8.0', `8.0 ${FLOAT}`],
    ['1e3', `1e3 ${FLOAT}`],
    ['.inf', `.inf ${FLOAT}`],
    ['0x10', '0x10 is not decimal; give a whole number such as 16'],
    ['-4', 'given.budgets.b.limit: is -4; give 0 or more'],
    ['"-4"', `given.budgets.b.limit: is "-4"; ${FIGURE}`],
    ['"= 1 - 4"', 'given.budgets.b.limit: the formula "= 1 - 4" is -3; give one that is 0 or more'],
    ['ten', `given.budgets.b.limit: is "ten"; ${FIGURE}`],
    ['"0.5"', 'given.budgets.b.limit: is "0.5" in credit; give a whole number'],
    [
      '"0.1234567891", unit: usd',
      'given.budgets.b.limit: is "0.1234567891" in usd; give at most 9 decimals',
    ],
    ['', `given.budgets.b.limit: is empty; ${LIMIT}`],
    ['[1]', `given.budgets.b.limit: is a list of 1; ${LIMIT}`],
    ['true', `given.budgets.b.limit: is true; ${LIMIT}`],
    [
      '9007199254740993',
      '9007199254740993 is beyond 2^53 and would not be exact; give less, or a figure in quotes',
    ],
    [
      '"9223372036854775808"',
      'given.budgets.b.limit: is "9223372036854775808" in credit; give at most 9223372036854775807',
    ],
    [
      '"= 4294967296 * 4294967296"',
      'given.budgets.b.limit: the formula "= 4294967296 * 4294967296" is 18446744073709551616; give at most 9223372036854775807',
    ],
  ])('limit: %s', (limit, message) => {
    expect(complaint(withLimit(limit))).toBe(`f.yaml:5: ${message}`);
  });

  test.each(['0', '9007199254740991', '"9223372036854775807"', '"0.000000001", unit: usd', 'none'])(
    'limit: %s is one',
    (limit) => {
      expect(complaint(withLimit(limit))).toBe('nothing is wrong');
    },
  );

  test('only the room of a budget can be below zero', () => {
    const figure = (word: string): string => withExpect(`{ budgets: { b: { ${word}: -3 } } }`);
    expect(complaint(figure('available'))).toBe('nothing is wrong');
    expect(complaint(figure('held'))).toBe(
      'f.yaml:8: expect.budgets.b.held: is -3; give 0 or more',
    );
  });
});

describe('a formula', () => {
  const limit = 'given.budgets.b.limit: the formula';
  const wrong: [string, string][] = [
    ['"= zz"', '"= zz" names "zz"; known are price'],
    ['"= toString"', '"= toString" cannot be read from "String" on'],
    ['"= constructor"', '"= constructor" names "constructor"; known are price'],
    ['"= 1 +"', '"= 1 +" ends too early'],
    ['"= 1 2"', '"= 1 2" goes on after its end with "2"'],
    ['"= (1"', '"= (1" misses a closing parenthesis'],
    ['"= 1 $ 2"', '"= 1 $ 2" cannot be read from "$ 2" on'],
    ['"= 4 / 2"', '"= 4 / 2" cannot be read from "/ 2" on'],
    ['"="', '"=" ends too early'],
    [
      `"= ${'('.repeat(100_000)}"`,
      '"= ((((((((((((((((((…" is 100002 characters long; at most are 500',
    ],
    [
      `"= ${'-'.repeat(100_000)}1"`,
      '"= ------------------…" is 100003 characters long; at most are 500',
    ],
  ];
  test.each(wrong.map((row) => [row[0].slice(0, 24), ...row] as const))(
    '%s',
    (_name, formula, message) => {
      expect(complaint(withNumbers('{ price: 3 }', formula))).toBe(`f.yaml:6: ${limit} ${message}`);
    },
  );

  test('is tried with the numbers that were set', () => {
    const text = withNumbers('{ price: 3 }', '"= 10 - price"');
    expect(readScenario(text, 'f.yaml', { price: 4, other: 1 }).numbers).toEqual({ price: 4 });
    expect(complaintOf(() => readScenario(text, 'f.yaml', { price: 11 }))).toBe(
      `f.yaml:6: ${limit} "= 10 - price" is -1; give one that is 0 or more`,
    );
  });

  test.each([
    [
      '{ A: 1 }',
      '3: numbers.A: is no name for this; give a-z, 0-9 and underscore, the first a letter',
    ],
    ['{ a: x }', '3: numbers.a: is "x"; give a whole number'],
    ['3', '3: numbers: is 3; give a mapping'],
  ])('has no numbers from %s', (numbers, message) => {
    expect(complaint(withNumbers(numbers, '1'))).toBe(`f.yaml:${message}`);
  });
});

describe('a name that nothing has', () => {
  test.each([
    ['{ wait_for: z, reaches: held }', 'refers to "z", which no step before it calls'],
    ['{ call: a, account: z }', '"z" is not an account; known are b'],
    [
      '{ call: a, route: z }',
      '"z" is not a route; known are fake-priced, fake-direct, fake-fallback, fake-unpriced, fake-job',
    ],
    ['{ freeze: z }', '"z" is not a budget; known are b'],
    ['{ expect: { budgets: { z: { held: 0 } } } }', '"z" is not a budget; known are b'],
    ['{ expect: { calls: { z: { held: 0 } } } }', 'refers to "z", which no step before it calls'],
    ['{ release: z }', 'refers to "z", which no step before it calls'],
  ])('%s', (step, message) => {
    expect(complaint(withStep(step))).toBe(`f.yaml:7: ${message}`);
  });

  test('in expect', () => {
    expect(complaint(withExpect('{ calls: { z: { held: 0 } } }'))).toBe(
      'f.yaml:8: expects of "z", which no step calls',
    );
  });

  test('a second call of one name', () => {
    expect(complaint(withStep('{ call: a }\n  - { call: a }'))).toBe(
      'f.yaml:8: a second call, job or task "a"; give it another name, and `operation` to repeat an id',
    );
  });
});

describe('a value of another kind', () => {
  test.each([
    ['hello', ': give a mapping with one of call, job, task, together'],
    ['[call, a]', ': give a mapping with one of call, job, task, together'],
    ['{ call: 3 }', '.call: is 3; give a name'],
    ['{ call: A B }', '.call: is "A B"; give 1 to 60 of a-z, 0-9, dot, dash and underscore'],
    ['{ call: a, stream: false }', '.stream: is false; give true'],
    ['{ call: a, tags: x }', '.tags: is "x"; give a list'],
    [
      '{ call: a, within: 1.5s }',
      '.within: is "1.5s"; give a duration such as "9d", "15m", "3s" or "200ms"',
    ],
    [
      '{ call: a, max_tokens: "0.5" }',
      '.max_tokens: is "0.5"; give a whole number, or a formula in quotes',
    ],
    [
      '{ report: a, amount: 1, id: 3 }',
      '.id: is 3; give text, in quotes if it looks like a number',
    ],
    ['{ report: a, amount: 1, id: x, times: 0 }', '.times: is 0; give 1 to 20'],
    ['{ report: a, id: x }', '.amount: is missing; give a whole number, or text in quotes'],
    [
      '{ provider: { do: { status: 402 } } }',
      '.provider.do.status: is 402; give one of 400, 401, 403',
    ],
    [
      '{ provider: { do: { honours_key: 3 } } }',
      '.provider.do.honours_key: is 3; give true or false',
    ],
    ['{ provider: { do: { lookup: 3 } } }', '.provider.do.lookup: is 3; give a mapping'],
    [
      '{ provider: { do: { charge: [] } } }',
      '.provider.do.charge: is a list of 0; give credits as a whole number',
    ],
    ['{ provider: {} }', '.provider.do: is missing; give a mapping'],
    ['{ together: [{ call: a }] }', '.together: is a list of 1; give 2 to 16 calls'],
  ])('%s', (step, message) => {
    const found = complaint(withStep(step));
    expect(found.split('\n')[0]).toContain(`f.yaml:7: steps.0${message}`);
    expect(found).not.toMatch(/invalid|expected|received|undefined|too (big|small)|does not fit/i);
  });

  test.each([
    ['steps: hello\n', '6: steps: is "hello"; give a list of steps'],
    ['steps: []\n', '6: steps: is a list of 0; give at least one step'],
    ['', '1: steps: is missing; give a list of steps'],
  ])('steps of %j', (steps, message) => {
    expect(complaint(GOOD.replace(/steps:\n.*\n/, steps))).toBe(`f.yaml:${message}`);
  });
});
