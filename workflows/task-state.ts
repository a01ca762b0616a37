// Task state
// ----------
// What a task knows of its steps, and what it shows.

import { setCurrentDetails } from '@temporalio/workflow';
import type { OperatorMessage } from '../domain/operator-message.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import type { AgentTaskInput, TaskStep } from '../domain/task-input.js';
import {
  describeTask,
  reportStep,
  type StepStatus,
  type TaskReport,
} from '../domain/task-report.js';
import { ledgerSteps } from './steps.js';
import type { SupervisedOperation } from './supervised.js';

export interface TaskState {
  readonly input: AgentTaskInput & { readonly taskId: string };
  readonly steps: readonly StepState[];
  wish: OperatorMessage | undefined;
  isWorkflowCancelled: boolean;
  problem: string | null;
  isFinished: boolean;
}

export interface StepState {
  readonly step: TaskStep;
  readonly operationId: string;
  status: StepStatus;
  operation: SupervisedOperation | undefined;
  /** What the ledger said of it last. */
  snapshot: OperationSnapshot | undefined;
  /** It was refused: nothing stands in the ledger for it, whatever stands under its id. */
  isRefused: boolean;
  /** It ended with an answer, so that the steps after it may begin. */
  isGood: boolean;
  /** Why it was refused before anything was held. */
  problem: string | undefined;
}

export function isOver({ status }: StepState): boolean {
  return status === 'ended' || status === 'skipped' || status === 'invalid';
}

/** Reads from the ledger where these steps stand: what was started, and nothing else. */
export async function lookAt(task: TaskState, states: readonly StepState[]): Promise<void> {
  const asked = states.filter(({ operation, isRefused }) => operation !== undefined && !isRefused);
  if (asked.length === 0) return;
  const operationIds = asked.map(({ operationId }) => operationId);
  const { accountId } = task.input;
  const snapshots = await ledgerSteps().readTask({ accountId, operationIds });
  for (const [index, state] of asked.entries()) state.snapshot = snapshots[index] ?? undefined;
}

export function reportOf(task: TaskState): TaskReport {
  const isStopWanted = task.wish !== undefined;
  return {
    taskId: task.input.taskId,
    accountId: task.input.accountId,
    status: statusOf(task),
    isStopWanted,
    steps: task.steps.map(({ step, snapshot, ...state }) =>
      reportStep({ ...state, id: step.id }, snapshot, isStopWanted),
    ),
    problem: task.problem,
  };
}

/** Every step has said what it will say, whatever its charge turns out to be. */
export function isAnswered(task: TaskState): boolean {
  return task.steps.every((state) => isOver(state) || state.status === 'answered');
}

function statusOf(task: TaskState): TaskReport['status'] {
  if (task.problem !== null) return 'refused';
  if (task.isFinished) return 'finished';
  return isAnswered(task) ? 'answered' : 'running';
}

export function show(task: TaskState): void {
  setCurrentDetails(describeTask(reportOf(task)));
}
