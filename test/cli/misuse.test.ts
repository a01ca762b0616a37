import { describe, expect, test } from 'vitest';
import { runCli } from '../support/run-cli.js';

const NOWHERE = 'postgres://nobody:wrong@127.0.0.1:1/nothing';

describe('holdfast', () => {
  test.each([
    ['nothing running', ['status'], 3, 'Start a stack with: npm start'],
    [
      'nothing running for a call',
      ['call', '--account', 'a', '--route', 'r', '--max-tokens', '1', '--prompt', 'x'],
      3,
      'npm start',
    ],
    ['an unknown command', ['frobnicate'], 2, "unknown command 'frobnicate'"],
    ['an unknown flag', ['status', '--colour'], 2, "unknown option '--colour'"],
    [
      'a missing flag',
      ['budget', 'create', 'x', '--unit', 'credit'],
      2,
      "required option '--limit <amount>'",
    ],
    [
      'a float',
      ['budget', 'create', 'x', '--unit', 'credit', '--limit', '1.5'],
      2,
      '"1.5" has 1, at most 0 are exact',
    ],
    [
      'a negative amount',
      ['budget', 'create', 'x', '--unit', 'credit', '--limit=-5'],
      2,
      'not an amount in credit: "-5"',
    ],
    [
      'an amount above 2^63',
      ['budget', 'create', 'x', '--unit', 'credit', '--limit', '9223372036854775808'],
      2,
      'must not exceed 9223372036854775807',
    ],
    [
      'ten decimals',
      ['budget', 'create', 'x', '--unit', 'usd', '--limit', '0.1234567891'],
      2,
      'has 10, at most 9 are exact',
    ],
    [
      'an unknown unit',
      ['budget', 'create', 'x', '--unit', 'euro', '--limit', '1'],
      2,
      '--unit is "euro"; give usd or credit',
    ],
    ['an unknown state', ['ops', 'list', '--state', 'lost'], 2, '--state is "lost"'],
    ['a story without a story', ['start', '--exit', '--price', '60'], 2, 'tell no story'],
    ['a price of text', ['start', '--exit', '--price', 'cheap'], 2, '--price is "cheap"'],
    [
      'malformed JSON',
      ['call', '--account', 'a', '--route', 'r', '--max-tokens', '1', '--request-json', '{oops'],
      2,
      '--request-json is not JSON: {oops',
    ],
    [
      'neither prompt nor request',
      ['call', '--account', 'a', '--route', 'r', '--max-tokens', '1'],
      2,
      'one of them',
    ],
    [
      'max tokens of text',
      ['call', '--account', 'a', '--route', 'r', '--max-tokens', 'many', '--prompt', 'x'],
      2,
      '--max-tokens is "many"; give a whole number, 1 or more',
    ],
    ['a long id', ['account', 'create', 'x'.repeat(201)], 2, 'is 201 characters long'],
    ['an empty id', ['account', 'create', ''], 2, 'is empty'],
    ['a missing file', ['config', 'check', '/nowhere.yaml'], 2, 'cannot read /nowhere.yaml'],
  ])('%s ends with its code and the way out', async (_name, args, code, message) => {
    const run = await runCli(args);
    expect([run.code, run.stderr]).toEqual([code, expect.stringContaining(message)]);
    expect(run.stderr).not.toContain('    at ');
  });

  test('a database that is not there is one sentence and code 3', async () => {
    const run = await runCli(['budget', 'list'], { DATABASE_URL: NOWHERE });
    expect([run.code, run.stderr]).toEqual([3, expect.stringContaining('LEDGER_UNAVAILABLE')]);
  });

  test('a wrong DATABASE_URL is misuse that names the variable and the right form', async () => {
    const run = await runCli(['budget', 'list'], { DATABASE_URL: 'my database' });
    expect([run.code, run.stderr]).toEqual([
      2,
      expect.stringContaining('DATABASE_URL: is not a database address'),
    ]);
  });

  test('a Temporal that is not there is one sentence and code 3', async () => {
    const run = await runCli(['setup', 'temporal'], { TEMPORAL_ADDRESS: '127.0.0.1:1' });
    expect([run.code, run.stderr]).toEqual([
      3,
      expect.stringContaining('nothing answers at 127.0.0.1:1'),
    ]);
  });
});
