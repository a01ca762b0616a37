import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeProblems } from '../../domain/input-fields.js';
import { boundProblemsOnRoute, readRemoteJobInput } from '../../domain/job-input.js';
import { readMessage } from '../../domain/operator-message.js';
import { readStoredInput } from '../../domain/stored-input.js';
import { operationIdOfStep, readAgentTaskInput } from '../../domain/task-input.js';

const call = {
  route: 'gpt',
  maxTokens: 4,
  request: { messages: [{ role: 'user', content: 'x' }] },
};
const job = { route: 'scan', bound: { ticks: 20 }, request: {} };

function told(raw: unknown): string {
  const read = readAgentTaskInput(raw, 'task/t-1');
  return read.kind === 'problems' ? describeProblems(read.problems) : 'fine';
}
const plan = (steps: unknown, more: object = {}) => ({ accountId: 'acme', steps, ...more });

describe('a plan', () => {
  test('takes its id from the workflow, and each step an operation that no other task has', () => {
    const read = readAgentTaskInput(
      plan([
        { id: 'a', call },
        { id: 'b', after: ['a'], job },
      ]),
      'task/t-1',
    );
    expect(read).toMatchObject({ kind: 'input', input: { taskId: 't-1' } });
    expect(operationIdOfStep('t/1', 'a')).toBe('t/1/a');
  });

  test.each([
    [
      'a circle',
      plan([
        { id: 'a', after: ['c'], call },
        { id: 'b', after: ['a'], call },
        { id: 'c', after: ['b'], call },
      ]),
      'wait for each other for ever: a after c after b after a',
    ],
    [
      'a step after itself',
      plan([{ id: 'a', after: ['a'], call }]),
      'wait for each other for ever: a after a',
    ],
    [
      '10,000 steps',
      plan(Array.from({ length: 10_000 }, () => ({}))),
      'steps has 10000 steps; at most 500',
    ],
    [
      'a stranger',
      plan([{ id: 'a', after: ['z'], call }]),
      'steps[0].after names "z", which is no step',
    ],
    [
      'two of one id',
      plan([
        { id: 'a', call },
        { id: 'a', call },
      ]),
      'steps has two steps "a"',
    ],
    [
      'a step with both',
      plan([{ id: 'a', call, job }]),
      'steps[0] has a call and a job, or neither',
    ],
    ['a step with neither', plan([{ id: 'a' }]), 'steps[0] has a call and a job, or neither'],
    [
      'a step with a slash',
      plan([{ id: 'a/b', call }]),
      'steps[0].id is "a/b"; give one without a slash',
    ],
    ['a long id', plan([{ id: 'a'.repeat(100), call }]), 'steps[0].id is 100 characters long'],
    [
      'an account of its own',
      plan([{ id: 'a', call: { ...call, accountId: 'x' } }]),
      'steps[0].call.accountId is set by the task',
    ],
    [
      'a wrong job',
      plan([{ id: 'a', job: { ...job, bound: { ticks: 0 } } }]),
      'steps[0].job.bound.ticks is 0',
    ],
    [
      'a limit that is a number',
      plan([{ id: 'a', call }], { budget: { unit: 'credit', limit: 5 } }),
      'budget.limit is 5',
    ],
    [
      'a unit that nobody has',
      plan([{ id: 'a', call }], { budget: { unit: 'eur', limit: '5' } }),
      'budget.unit is "eur"',
    ],
    [
      'an unknown field',
      plan([{ id: 'a', call }], { colour: 'red' }),
      'colour is not a field of agentTask',
    ],
    ['no object', 7, 'input is 7; give one object'],
  ])('with %s is refused, by its place', (_, raw, message) => {
    expect(told(raw)).toContain(message);
  });

  test('of 500 steps in a row is fine, and read at once', () => {
    const steps = Array.from({ length: 500 }, (_, no) => ({
      ...{ id: `s${no}`, call },
      ...(no > 0 && { after: [`s${no - 1}`] }),
    }));
    const startedAt = performance.now();
    expect(told(plan(steps.reverse()))).toBe('fine');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});

describe('a job', () => {
  const of = (bound: unknown): string => {
    const read = readRemoteJobInput({ accountId: 'acme', ...job, bound });
    return read.kind === 'problems' ? describeProblems(read.problems) : 'fine';
  };

  test.each([0, -1, 1.5, '20', null, 2 ** 60])('with a bound of %j is refused', (ticks) => {
    expect(of({ ticks })).toContain('bound.ticks is');
  });

  test('needs a bound of dimensions', () => {
    expect(of({})).toContain('bound is {}');
    expect(of(undefined)).toContain('bound is missing');
    expect(of({ 'TICKS/1': 3 })).toContain('bound.TICKS/1 is no dimension');
    expect(of({ ticks: 20 })).toBe('fine');
  });

  test('has exactly the dimensions of its route, each up to its most', () => {
    const problems = (bound: Record<string, number>): string =>
      describeProblems(boundProblemsOnRoute(bound, { ticks: 100, units: 5 }));
    expect(problems({ ticks: 101, units: 1 })).toBe(
      'bound.ticks is 101; give a whole number, 1 to 100',
    );
    expect(problems({ ticks: 1 })).toBe('bound.units is missing; give a whole number, 1 to 5');
    expect(problems({ ticks: 1, units: 1, hours: 2 })).toContain(
      'bound.hours is no dimension of this route',
    );
    expect(problems({ ticks: 100, units: 5 })).toBe('');
  });

  test.each([['job\nwith a newline'], [''], [' spaced '], ['x'.repeat(201)]])(
    'with the id %j is refused',
    (operationId) => {
      const read = readRemoteJobInput({ accountId: 'acme', operationId, ...job });
      expect(read.kind).toBe('problems');
    },
  );

  test('with a slash in its id is fine', () => {
    expect(readRemoteJobInput({ accountId: 'acme', operationId: 'a/b', ...job }).kind).toBe(
      'input',
    );
  });
});

describe('what comes with a wish', () => {
  test('is read whatever it is, and what a database could not store is cut out', () => {
    fc.assert(
      fc.property(fc.anything(), (raw) => {
        const { message } = readMessage(raw);
        // eslint-disable-next-line no-control-regex -- control characters are exactly what is looked for
        expect(JSON.stringify(message)).not.toMatch(/[\u0000-\u001f]/);
        expect(message.by.length).toBeGreaterThan(0);
        expect(message.by.length).toBeLessThanOrEqual(200);
      }),
      { numRuns: 500 },
    );
    const wild = { by: 'a\u0000b\ud800', reason: 'x'.repeat(10_000), requestId: '\n' };
    expect(readMessage(wild).message).toEqual({ by: 'ab', reason: 'x'.repeat(200) });
  });

  test('is refused as an update by the name of each field', () => {
    const { problems } = readMessage({ by: 7, colour: 'red' });
    expect(describeProblems(problems)).toMatch(
      /requestId is missing.*by is not a text.*reason is missing.*colour/s,
    );
    expect(readMessage({ by: 'ada', requestId: 'r-1', reason: 'stuck' }).problems).toEqual([]);
  });
});

test('a stored input is one that says so, with both its ids', () => {
  expect(readStoredInput({ stored: true, accountId: 'a', operationId: 'b' })).toBeDefined();
  for (const raw of [
    undefined,
    'x',
    {},
    { stored: true },
    { stored: 1, accountId: 'a', operationId: 'b' },
  ]) {
    expect(readStoredInput(raw)).toBeUndefined();
  }
});
