import { describe, expect, test } from 'vitest';
import { combineAnswers } from '../../domain/combine-answers.js';
import { amount } from '../../domain/money.js';
import type { Observation } from '../../domain/observation.js';

const evidence = { source: 'lookup', reference: 'r' } as const;
const status = (value: 'running' | 'completed' | 'cancelled' | 'failed'): Observation => ({
  ...{ kind: 'status', status: value, remoteId: 'job_1', evidence },
});
const silence: Observation = {
  kind: 'no_answer',
  reason: 'no_answer',
  detail: 'http 503',
  evidence,
};
const notFound: Observation = { ...silence, reason: 'not_found', detail: 'http 404' };
const contradiction: Observation = { ...silence, reason: 'inconsistent_usage', detail: 'in usd' };
const charged = (basis: 'final' | 'lower_bound', value: bigint): Observation => ({
  ...{ kind: 'charge', basis, amount: amount(value), evidence },
});

const told = (one: Observation, other: Observation, floor = 0n) =>
  combineAnswers(one, other, amount(floor));

describe('a round of questions is one observation', () => {
  test('Q1: a final charge is recorded whatever the status said, with what was seen', () => {
    expect(told(status('cancelled'), charged('final', 5n))).toMatchObject([
      { kind: 'charge', basis: 'final', amount: 5n, execution: 'cancelled', remoteId: 'job_1' },
    ]);
    const [alone, ...rest] = told(silence, charged('final', 5n));
    expect(alone).toMatchObject({ kind: 'charge', basis: 'final' });
    expect(alone).not.toHaveProperty('execution');
    expect(rest).toEqual([]);
  });

  test('Q2: a running total never covers up a status that was not answered', () => {
    expect(told(silence, charged('lower_bound', 3n))).toMatchObject([
      { kind: 'charge', basis: 'lower_bound' },
      { kind: 'no_answer', reason: 'no_answer' },
    ]);
    // A floor that is known already is no news.
    expect(told(silence, charged('lower_bound', 3n), 3n)).toEqual([silence]);
  });

  test('Q3: running work needs no charge yet, and work that is over without one is unknown', () => {
    expect(told(status('running'), silence)).toEqual([status('running')]);
    expect(told(status('running'), charged('lower_bound', 3n))).toMatchObject([
      { kind: 'charge', basis: 'lower_bound', execution: 'running' },
    ]);
    for (const ended of ['completed', 'cancelled', 'failed'] as const) {
      for (const other of [silence, notFound]) {
        expect(told(status(ended), other)).toMatchObject([
          { kind: 'no_answer', reason: 'terminal_without_charge', execution: ended },
        ]);
      }
      expect(told(status(ended), contradiction)).toMatchObject([
        { kind: 'no_answer', reason: 'inconsistent_usage', execution: ended },
      ]);
    }
  });

  test('what nobody answered is told by the status', () => {
    expect(told(notFound, silence)).toEqual([notFound]);
  });
});
