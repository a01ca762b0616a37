// Tasks
// -----
// How a scenario starts agent tasks, and what it can tell of them. Each operation of a task is told of
// as `task.step`.

import { operationIdOfStep, type AgentTaskInput, type TaskStep } from '../../domain/task-input.js';
import type { TaskStepOf } from '../language/steps.js';
import { toAmount, toCount } from './numbers.js';
import { accountOf, check, type Play } from './play.js';

export async function playTask(play: Play, step: TaskStepOf, line: number): Promise<void> {
  const taskId = play.nameOf(step.task);
  const input = inputOf(play, step);
  const { holdfast, temporal, taskQueue } = play.stage;
  const handle = holdfast.task({ ...input, taskId });
  play.tasks.set(step.task, { step, taskId, handle });
  for (const each of input.steps) registerOperation(play, { step, taskId, each, input });
  let heard = 'started';
  if (step.via === 'client') heard = (await handle.start()).status;
  else {
    await temporal.workflow.start('agentTask', {
      taskQueue,
      workflowId: handle.workflowId,
      args: [input],
    });
  }
  play.tell(`the task "${step.task}" is ${heard}`);
  check(play, {
    ...{ name: `task ${step.task} hears`, expected: step.hears, actual: heard },
    ...{ source: 'what whoever starts it hears', line },
  });
}

function inputOf(play: Play, step: TaskStepOf): AgentTaskInput {
  const { numbers } = play.scenario;
  return {
    accountId: accountOf(play, step),
    ...(step.budget !== undefined && {
      budget: { unit: 'credit', limit: toAmount(step.budget, 'credit', numbers).toString() },
    }),
    steps: step.steps.map((each) => stepOf(each, numbers)),
  };
}

function stepOf(
  { id, after, call, job }: TaskStepOf['steps'][number],
  numbers: Play['scenario']['numbers'],
): TaskStep {
  const work = {
    ...(call !== undefined && {
      call: {
        route: call.route,
        maxTokens: toCount(call.max_tokens, numbers),
        request: { messages: [{ role: 'user', content: 'Count.' }] },
      },
    }),
    ...(job !== undefined && {
      job: {
        route: job.route,
        bound: { ticks: toCount(job.ticks, numbers) },
        request: { count: 'ticks' },
      },
    }),
  };
  return { id, ...(after !== undefined && { after }), ...work } as TaskStep;
}

function registerOperation(
  play: Play,
  of: {
    readonly step: TaskStepOf;
    readonly taskId: string;
    readonly each: TaskStep;
    readonly input: AgentTaskInput;
  },
): void {
  const { step, taskId, each, input } = of;
  const name = `${step.task}.${each.id}`;
  const { accountId } = input;
  const operationId = operationIdOfStep(taskId, each.id);
  const ids = { accountId, operationId, taskId };
  const { holdfast } = play.stage;
  if ('job' in each) {
    const own = { ...each.job, ...ids };
    const handle = holdfast.job(own);
    play.calls.set(name, {
      ...{ name, accountId, operationId, handle },
      kind: 'job',
      step: undefined,
      input: own,
      verdict: undefined,
    });
    return;
  }
  const own = { ...each.call, ...ids };
  const handle = holdfast.call(own);
  play.calls.set(name, {
    ...{ name, accountId, operationId, handle },
    kind: 'call',
    step: undefined,
    input: own,
    verdict: undefined,
  });
}
