// agentTask
// ---------
// A plan of calls and jobs under one task. The supervisors of its operations outlive it in every way:
// closing, cancelling or terminating it ends none of them.
//
// Invariants:
//   K1. A step is started once; run again, the task adopts what was started before.
//   K2. The task is finished when its operations are. Its answer may be there earlier.
//   K3. A wish to stop is passed on to each operation that was started, and to nothing else; what was
//       not started is never started.

import {
  allHandlersFinished,
  ApplicationFailure,
  CancelledFailure,
  CancellationScope,
  ChildWorkflowFailure,
  condition,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { describeProblems } from '../domain/input-fields.js';
import { describeRefusal } from '../domain/refusal.js';
import type { TaskReport } from '../domain/task-report.js';
import { operationIdOfStep, readAgentTaskInput } from '../domain/task-input.js';
import { taskSearchAttributes } from './search-attributes.js';
import { ledgerSteps } from './steps.js';
import { startSupervised } from './supervised.js';
import { listenToTask } from './task-handlers.js';
import { isOver, lookAt, reportOf, show, type StepState, type TaskState } from './task-state.js';

export async function agentTask(raw: unknown): Promise<TaskReport> {
  const read = readAgentTaskInput(raw, workflowInfo().workflowId);
  if (read.kind === 'problems') {
    throw ApplicationFailure.nonRetryable(describeProblems(read.problems), 'INVALID_INPUT');
  }
  const { input } = read;
  const task: TaskState = {
    input,
    steps: input.steps.map((step) => ({
      step,
      operationId: operationIdOfStep(input.taskId, step.id),
      status: 'waiting',
      operation: undefined,
      snapshot: undefined,
      problem: undefined,
      isRefused: false,
      isGood: false,
    })),
    wish: undefined,
    isWorkflowCancelled: false,
    problem: null,
    isFinished: false,
  };
  listenToTask(task);
  return CancellationScope.nonCancellable(() => run(task));
}

async function run(task: TaskState): Promise<TaskReport> {
  upsertSearchAttributes(taskSearchAttributes(task.input.taskId));
  show(task);
  const { accountId, taskId, budget } = task.input;
  if (budget !== undefined) {
    const { problem } = await ledgerSteps().openTask({ accountId, taskId, budget });
    task.problem = problem;
  }
  if (task.problem === null) {
    await Promise.all([...task.steps.map((step) => runStep(task, step)), passOnWishOnce(task)]);
  }
  task.isFinished = true;
  show(task);
  await condition(allHandlersFinished);
  const report = reportOf(task);
  if (task.isWorkflowCancelled)
    throw new CancelledFailure('the task was to stop; its steps have ended');
  return report;
}

async function runStep(task: TaskState, state: StepState): Promise<void> {
  const before = task.steps.filter(({ step }) => state.step.after?.includes(step.id) === true);
  await condition(() => task.wish !== undefined || before.every(isOver));
  if (task.wish !== undefined || !before.every(({ isGood }) => isGood)) {
    state.status = 'skipped';
    show(task);
    return;
  }
  const { accountId, taskId } = task.input;
  const { step, operationId } = state;
  const ids = { accountId, operationId, taskId };
  state.status = 'started';
  show(task);
  const { taskQueue } = workflowInfo();
  state.operation =
    'call' in step
      ? await startSupervised('call', { ...step.call, ...ids }, { taskQueue })
      : await startSupervised('job', { ...step.job, ...ids }, { taskQueue });
  try {
    const result = await state.operation.result();
    state.isRefused = result.outcome === 'refused';
    if (result.refusal !== null) state.problem = `refused: ${describeRefusal(result.refusal)}`;
    state.isGood = result.outcome === 'settled' && result.execution !== 'failed';
    state.status = 'ended';
  } catch (error) {
    // What it was asked for was refused before anything stood in the ledger.
    if (!(error instanceof ChildWorkflowFailure)) throw error;
    state.status = 'invalid';
    state.problem = error.cause?.message ?? error.message;
  }
  await lookAt(task, [state]);
  show(task);
}

/** Each operation that was started hears of it; a step that is just being started does so afterwards. */
async function passOnWishOnce(task: TaskState): Promise<void> {
  await condition(() => task.wish !== undefined || task.steps.every(isOver));
  const { wish } = task;
  if (wish === undefined) return;
  await Promise.all(
    task.steps.map(async (state) => {
      await condition(() => state.operation !== undefined || isOver(state));
      if (!isOver(state)) await state.operation?.requestCancel(wish);
    }),
  );
  await lookAt(task, task.steps);
  show(task);
}
