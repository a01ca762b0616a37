// Task input
// ----------
// What an agent was asked to do, as data: calls and jobs, each after the steps that it names, and
// under a budget of their own where one is given. Whoever writes an agent as a workflow needs none of
// this: there a call or a job is started in one line.

import { type LlmCallInput, readLlmCallInput } from './call-input.js';
import { taskWorkflowId } from './identity.js';
import { idProblem, isRecord, type Problem, say, unknownFieldProblems } from './input-fields.js';
import { readRemoteJobInput, type RemoteJobInput } from './job-input.js';
import { parseAmount, UNITS, type Unit } from './money.js';

type Inherited = 'accountId' | 'operationId' | 'taskId' | 'askId';

export type TaskStep = {
  readonly id: string;
  /** Steps that must have ended with an answer first. */
  readonly after?: readonly string[];
} & (
  | { readonly call: Omit<LlmCallInput, Inherited> }
  | { readonly job: Omit<RemoteJobInput, Inherited> }
);

export interface AgentTaskInput {
  readonly accountId: string;
  /** Default: what the workflow id says after `task/`. */
  readonly taskId?: string;
  /** A limit for this task alone, beside the account's budgets: a decimal as text, such as "0.25". */
  readonly budget?: { readonly unit: Unit; readonly limit: string };
  readonly steps: readonly TaskStep[];
}

export type ReadTaskInput =
  | { readonly kind: 'input'; readonly input: AgentTaskInput & { readonly taskId: string } }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

const STEP_COUNT_MAX = 500;
/** So that the id of an operation, which is made of both, stays an id. */
const PART_LENGTH_MAX = 99;
const INPUT_FIELDS: ReadonlySet<string> = new Set(['accountId', 'taskId', 'budget', 'steps']);
const STEP_FIELDS: ReadonlySet<string> = new Set(['id', 'after', 'call', 'job']);
const BUDGET_FIELDS: ReadonlySet<string> = new Set(['unit', 'limit']);

/** Takes anything. Every problem is told with its step. */
export function readAgentTaskInput(raw: unknown, workflowId: string): ReadTaskInput {
  if (!isRecord(raw)) {
    const message = `is ${say(raw)}; give one object, such as {"accountId": "acme", "steps": […]}`;
    return { kind: 'problems', problems: [{ field: 'input', message }] };
  }
  const taskId = raw['taskId'] ?? taskIdOf(workflowId);
  const problems = [
    ...idProblem('accountId', raw['accountId']),
    ...partProblems('taskId', taskId),
    ...budgetProblems(raw['budget']),
    ...stepsProblems(raw['steps']),
    ...unknownFieldProblems(raw, 'agentTask', INPUT_FIELDS),
  ];
  return problems.length > 0
    ? { kind: 'problems', problems }
    : { kind: 'input', input: { ...(raw as unknown as AgentTaskInput), taskId: taskId as string } };
}

/** The operation of one step; no other task can have it. */
export function operationIdOfStep(taskId: string, stepId: string): string {
  return `${taskId}/${stepId}`;
}

function taskIdOf(workflowId: string): string {
  const prefix = taskWorkflowId('');
  return workflowId.startsWith(prefix) ? workflowId.slice(prefix.length) : workflowId;
}

function partProblems(field: string, value: unknown): Problem[] {
  const problems = idProblem(field, value);
  if (problems.length > 0 || (value as string).length <= PART_LENGTH_MAX) return problems;
  const length = (value as string).length;
  return [
    { field, message: `is ${length} characters long; give at most ${PART_LENGTH_MAX} in a task` },
  ];
}

function budgetProblems(budget: unknown): Problem[] {
  if (budget === undefined) return [];
  if (!isRecord(budget)) {
    const message = `is ${say(budget)}; give {"unit": "credit", "limit": "100"}`;
    return [{ field: 'budget', message }];
  }
  const { unit, limit } = budget;
  if (!UNITS.includes(unit as Unit)) {
    return [{ field: 'budget.unit', message: `is ${say(unit)}; give ${UNITS.join(' or ')}` }];
  }
  try {
    if (typeof limit !== 'string') throw new RangeError('it must be text');
    parseAmount(limit, unit as Unit);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const message = `is ${say(limit)}; give an amount as text, such as "100": ${error.message}`;
    return [{ field: 'budget.limit', message }];
  }
  return unknownFieldProblems(budget, 'budget', BUDGET_FIELDS);
}

function stepsProblems(steps: unknown): Problem[] {
  if (!Array.isArray(steps) || steps.length === 0) {
    const message = `is ${say(steps)}; give a list of at least one step`;
    return [{ field: 'steps', message }];
  }
  if (steps.length > STEP_COUNT_MAX) {
    const message = `has ${steps.length} steps; at most ${STEP_COUNT_MAX} are taken, split the task`;
    return [{ field: 'steps', message }];
  }
  const problems = steps.flatMap((step: unknown, index) => stepProblems(step, index));
  // An order is looked for only among steps that can be told apart.
  return problems.length > 0 ? problems : orderProblems(steps as readonly TaskStep[]);
}

function stepProblems(step: unknown, index: number): Problem[] {
  const field = `steps[${index}]`;
  if (!isRecord(step)) {
    return [{ field, message: `is ${say(step)}; give {"id": "a", "call": {…}} or {"job": {…}}` }];
  }
  const { id, after, call, job } = step;
  const own = [
    ...partProblems(`${field}.id`, id),
    // The last slash of an operation's id parts task and step: no two tasks share an operation.
    ...(typeof id === 'string' && id.includes('/')
      ? [{ field: `${field}.id`, message: `is ${say(id)}; give one without a slash` }]
      : []),
    ...unknownFieldProblems(step, 'a step', STEP_FIELDS).map((problem) => ({
      ...problem,
      field: `${field}.${problem.field}`,
    })),
    ...afterProblems(`${field}.after`, after),
  ];
  if ((call === undefined) === (job === undefined)) {
    return [...own, { field, message: 'has a call and a job, or neither; give exactly one' }];
  }
  const word = call === undefined ? 'job' : 'call';
  return [...own, ...workProblems(`${field}.${word}`, { word, work: call ?? job })];
}

function afterProblems(field: string, after: unknown): Problem[] {
  if (after === undefined) return [];
  return Array.isArray(after) && after.every((each) => typeof each === 'string')
    ? []
    : [{ field, message: `is ${say(after)}; give a list of ids of steps` }];
}

/** What the call or the job itself would be refused for, told with its step. */
function workProblems(
  field: string,
  about: { readonly word: 'call' | 'job'; readonly work: unknown },
): Problem[] {
  const { word, work } = about;
  if (!isRecord(work)) return [{ field, message: `is ${say(work)}; give an object` }];
  const inherited = ['accountId', 'operationId', 'taskId', 'askId'].filter((name) => name in work);
  if (inherited.length > 0) {
    return inherited.map((name) => ({
      field: `${field}.${name}`,
      message: 'is set by the task; leave it out',
    }));
  }
  // Whose task it is was checked already, and is not told again with every step.
  const whole = { ...work, accountId: 'checked' };
  const read = word === 'call' ? readLlmCallInput(whole) : readRemoteJobInput(whole);
  return read.kind === 'input'
    ? []
    : read.problems.map((problem) => ({ ...problem, field: `${field}.${problem.field}` }));
}

function orderProblems(steps: readonly TaskStep[]): Problem[] {
  const ids = steps.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) {
    return [{ field: 'steps', message: `has two steps "${twice}"; give each an id of its own` }];
  }
  const known = new Set(ids);
  const strangers = steps.flatMap(({ after = [] }, index) =>
    after
      .filter((id) => !known.has(id))
      .map((id) => ({
        field: `steps[${index}].after`,
        message: `names "${id}", which is no step; steps are ${say(ids.slice(0, 10))}`,
      })),
  );
  if (strangers.length > 0) return strangers;
  const cycle = findCycle(steps);
  return cycle === undefined
    ? []
    : [{ field: 'steps', message: `wait for each other for ever: ${cycle.join(' after ')}` }];
}

/** The ids of one circle, its first again at its end; undefined where there is none. */
function findCycle(steps: readonly TaskStep[]): readonly string[] | undefined {
  const after = new Map(steps.map((step) => [step.id, step.after ?? []]));
  const done = new Set<string>();
  for (const { id } of steps) {
    // By hand and not by recursion: a chain may be as long as a plan.
    const path: string[] = [];
    const pending: { readonly id: string; readonly depth: number }[] = [{ id, depth: 0 }];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (const left of path.splice(next.depth)) done.add(left);
      if (path.includes(next.id)) return [...path.slice(path.indexOf(next.id)), next.id];
      if (done.has(next.id)) continue;
      path.push(next.id);
      const depth = next.depth + 1;
      for (const before of after.get(next.id) ?? []) pending.push({ id: before, depth });
    }
    for (const left of path) done.add(left);
  }
  return undefined;
}
