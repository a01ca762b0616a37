import { describe, expect, test } from 'vitest';
import {
  type Report,
  summaryLine,
  toJson,
  toLines,
  type Verdict,
} from '../../scenario-runner/run/report.js';

const held = {
  name: 'budget b held',
  expected: '0',
  actual: '0',
  ok: true,
  source: 'ledger.budget_view',
  line: 8,
};
const captured = { ...held, name: 'budget b captured', expected: '4', actual: '8', ok: false };
const received = { ...captured, name: 'provider received', source: 'GET /truth' };

const passed: Report = {
  scenario: 'x',
  file: '/s/x.yaml',
  policy: 'holdfast',
  verdict: 'pass',
  checks: [held],
  provider: { received: 1, charged: '4' },
  budgets: { b: { limit: '10', available: null } },
  notes: [],
  seconds: 1.5,
  timeline: [],
};
const failed: Report = {
  ...passed,
  verdict: 'fail',
  checks: [held, captured, received],
  firstOff: captured,
  notes: ['false_free: a sentence'],
  timeline: [{ at: '2026-01-02T03:04:05.678Z', who: 'ledger', what: 'a attempt 1: hold_placed' }],
};
const pending: Report = {
  ...passed,
  verdict: 'pending',
  reason: 'no such thing yet',
  checks: [],
  provider: null,
  seconds: 0,
};
const broken: Report = { ...failed, verdict: 'error', reason: 'line 7: waited in vain' };

const ALWAYS = [
  'scenario',
  'file',
  'policy',
  'verdict',
  'checks',
  'provider',
  'budgets',
  'seconds',
];

describe('the JSON of a report', () => {
  test.each([
    ['pass', passed, []],
    ['pass with notes', { ...passed, notes: ['late'] }, ['notes']],
    ['fail', failed, ['notes', 'firstOff', 'timeline']],
    ['pending', pending, ['reason']],
    ['error', broken, ['reason', 'notes', 'firstOff', 'timeline']],
  ])('has exactly these keys: %s', (_name, report, more) => {
    const text = toJson(report);
    expect(text).not.toContain('\n');
    expect(Object.keys(JSON.parse(text) as object).sort()).toEqual([...ALWAYS, ...more].sort());
  });

  test('has its figures without their lines, and the first that is off with it', () => {
    expect(JSON.parse(toJson(failed))).toMatchObject({
      checks: [
        { name: 'budget b held', ok: true },
        { name: 'budget b captured' },
        { name: 'provider received' },
      ],
      firstOff: captured,
      provider: { received: 1, charged: '4' },
      budgets: { b: { limit: '10', available: null } },
    });
    expect(Object.keys((JSON.parse(toJson(failed)) as Report).checks[0] ?? {})).toEqual([
      'name',
      'expected',
      'actual',
      'ok',
      'source',
    ]);
  });
});

describe('the lines of a report', () => {
  test('one for what is in order', () => {
    expect(toLines(passed)).toEqual(['pass    x  (1 figures, 1.5 s, charged 4)']);
    expect(toLines(pending)).toEqual(['pending x  (0 figures, 0 s): no such thing yet']);
  });

  test('what was expected, what was found and what happened for what is not', () => {
    expect(toLines(failed)).toEqual([
      'FAIL    x  (3 figures, 1.5 s, charged 4)',
      '  /s/x.yaml:8: budget b captured: expected 4, found 8  (ledger.budget_view)',
      '  also off: provider received: expected 4, found 8',
      '  note: false_free: a sentence',
      '  what happened:',
      '    2026-01-02T03:04:05.678Z  ledger    a attempt 1: hold_placed',
    ]);
    expect(toLines(broken)[0]).toBe(
      'ERROR   x  (3 figures, 1.5 s, charged 4): line 7: waited in vain',
    );
  });
});

test.each<[Verdict[], string]>([
  [[], 'scenarios: 0 passed, 0 failed, 0 pending'],
  [['pass', 'pass', 'pending'], 'scenarios: 2 passed, 0 failed, 1 pending'],
  [['fail', 'error', 'pass'], 'scenarios: 1 passed, 2 failed, 0 pending'],
])('the summary of %j', (verdicts, expected) => {
  expect(summaryLine(verdicts.map((verdict) => ({ ...passed, verdict })))).toBe(expected);
});
