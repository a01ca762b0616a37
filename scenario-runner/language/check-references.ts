// Whether every name that a scenario uses is one that it has, and whether it expects anything.

import type { Scenario } from './scenario.js';
import { type CallStep, type JobStep, nameOfAsking, type Step, type TaskStepOf } from './steps.js';
import type { Problem } from './unusable.js';

export const DEFAULT_ROUTES = [
  'fake-priced',
  'fake-direct',
  'fake-fallback',
  'fake-unpriced',
  'fake-job',
];
const JOB_ROUTE = 'fake-job';

/** Whether a route is for remote jobs: by its provider, or by being the default one. */
export function isForJobs({ given }: Scenario, route: string): boolean {
  const provider = given.routes[route]?.provider;
  return provider === undefined ? route === JOB_ROUTE : provider === 'jobs';
}

type LineOf = (path: readonly PropertyKey[]) => number;

export function checkReferences(scenario: Scenario, lineOf: LineOf): Problem[] {
  const problems: Problem[] = [];
  const expects =
    scenario.expect !== undefined || scenario.steps.some((step) => step.word === 'expect');
  if (!expects)
    problems.push({
      line: 1,
      message: 'expects nothing: it would pass whatever happens; add `expect`',
    });
  checkCalls(scenario, problems);
  checkBudgets(scenario, { problems, lineOf });
  return problems;
}

export function accountsOf(scenario: Scenario): string[] {
  const { accounts, budgets } = scenario.given;
  const paying = Object.keys(budgets).flatMap((budget) => payersOf(scenario, budget));
  return [...new Set([...Object.keys(accounts), ...paying])];
}

/** Who pays from a budget: the accounts it names, else the one of its own name where no scope says more. */
export function payersOf({ given }: Scenario, budget: string): readonly string[] {
  const { accounts, scopes = [] } = given.budgets[budget] ?? {};
  return accounts ?? (scopes.length === 0 ? [budget] : []);
}

function routesOf({ given }: Scenario): string[] {
  return [...new Set([...DEFAULT_ROUTES, ...Object.keys(given.routes)])];
}

const TOLD_CALLS = [
  'wait_for',
  'answer',
  'finish',
  'correct',
  'lookup',
  'look_up',
  'terminate',
  'cancel',
  'restart',
  'report',
  'cancelling',
  'signal',
  'reset',
  'delete',
] as const;

function checkCalls(scenario: Scenario, problems: Problem[]): void {
  const known = new Set<string>();
  const accounts = accountsOf(scenario);
  const routes = routesOf(scenario);
  const complain = (line: number, message: string): void => void problems.push({ line, message });
  const pays = (name: string, account: string | undefined, line: number): void => {
    if (account === undefined && accounts.length !== 1) {
      complain(
        line,
        `"${name}" names no account, and there is not exactly one; known are ${accounts.join(', ')}`,
      );
    }
    if (account !== undefined && !accounts.includes(account)) {
      complain(line, `"${account}" is not an account; known are ${accounts.join(', ')}`);
    }
  };
  const name = (told: string, line: number): void => {
    if (known.has(told))
      complain(
        line,
        `a second call, job or task "${told}"; give it another name, and \`operation\` to repeat an id`,
      );
    known.add(told);
  };
  const begin = (step: CallStep | JobStep, line: number): void => {
    const told = nameOfAsking(step);
    name(told, line);
    pays(told, step.account, line);
    if (step.hears !== 'invalid' && !routes.includes(step.route)) {
      complain(line, `"${step.route}" is not a route; known are ${routes.join(', ')}`);
    }
  };
  const beginTask = (step: TaskStepOf, line: number): void => {
    name(step.task, line);
    pays(step.task, step.account, line);
    for (const each of step.steps) name(`${step.task}.${each.id}`, line);
  };
  for (const { word, line, step } of scenario.steps) {
    if (word === 'call' || word === 'job') begin(step, line);
    if (word === 'task') beginTask(step, line);
    if (word === 'together') for (const call of step.together) begin(call, line);
    for (const told of namesIn({ word, line, step } as Step)) {
      if (!known.has(told)) complain(line, `refers to "${told}", which no step before it calls`);
    }
  }
  const expected = [scenario.expect?.calls, scenario.expect?.tasks];
  for (const told of expected.flatMap((each) => Object.keys(each ?? {}))) {
    if (!known.has(told))
      complain(scenario.expectLine, `expects of "${told}", which no step calls`);
  }
}

function namesIn({ word, step }: Step): string[] {
  if (word === 'expect') {
    return [step.expect.calls, step.expect.tasks].flatMap((each) => Object.keys(each ?? {}));
  }
  if (word === 'release') return step.release === 'all' ? [] : [step.release];
  return (TOLD_CALLS as readonly string[]).includes(word)
    ? [String((step as Record<string, unknown>)[word])]
    : [];
}

function checkBudgets(
  scenario: Scenario,
  { problems, lineOf }: { readonly problems: Problem[]; readonly lineOf: LineOf },
): void {
  const known = Object.keys(scenario.given.budgets);
  const check = (names: readonly string[], line: number): void => {
    for (const each of names) {
      if (!known.includes(each)) {
        problems.push({
          line,
          message: `"${each}" is not a budget; known are ${known.join(', ')}`,
        });
      }
    }
  };
  for (const { word, line, step } of scenario.steps) {
    if (word === 'expect') check(Object.keys(step.expect.budgets ?? {}), line);
    if (word === 'freeze' || word === 'unfreeze')
      check([(step as Record<string, string>)[word] ?? ''], line);
  }
  check(Object.keys(scenario.expect?.budgets ?? {}), scenario.expectLine);
  const routes = routesOf(scenario);
  for (const [route, { fallback }] of Object.entries(scenario.given.routes)) {
    for (const each of fallback ?? []) {
      if (!routes.includes(each)) {
        problems.push({
          line: lineOf(['given', 'routes', route, 'fallback']),
          message: `"${each}" is not a route; known are ${routes.join(', ')}`,
        });
      }
    }
  }
}
