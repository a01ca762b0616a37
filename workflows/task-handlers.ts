// How people and callers reach a task. The same rules as for a supervisor: total, first, shielded.

import { ApplicationFailure, CancellationScope, condition, setHandler } from '@temporalio/workflow';
import { describeProblems, isRecord } from '../domain/input-fields.js';
import { type OperatorMessage, readMessage } from '../domain/operator-message.js';
import type { TaskReport } from '../domain/task-report.js';
import { isAnswered, lookAt, reportOf, show, type TaskState } from './task-state.js';
import {
  childAnsweredSignal,
  requestCancelSignal,
  requestCancelUpdate,
  taskAnswerUpdate,
  taskReportQuery,
  taskReportUpdate,
} from './messages.js';

export function listenToTask(task: TaskState): void {
  CancellationScope.current().cancelRequested.catch(() => {
    task.isWorkflowCancelled = true;
    wishForStop(task, { by: 'temporal cancel' });
  });
  setHandler(
    requestCancelSignal,
    (raw: unknown) => {
      wishForStop(task, readMessage(raw).message);
      show(task);
    },
    { description: 'Ask every step to stop: {"by": "you", "reason": "why"}' },
  );
  setHandler(
    requestCancelUpdate,
    (raw: unknown) =>
      CancellationScope.nonCancellable(async () => {
        const isClosed = task.isFinished;
        if (!isClosed) wishForStop(task, readMessage(raw).message);
        await lookAt(task, task.steps);
        return {
          status: isClosed ? ('closed' as const) : ('requested' as const),
          cancel: 'requested' as const,
          report: null,
        };
      }),
    { validator: refuseBadMessage, description: 'The same, checked and answered' },
  );
  setHandler(
    childAnsweredSignal,
    (raw: unknown) => {
      const operationId = isRecord(raw) ? raw['operationId'] : undefined;
      const state = task.steps.find((step) => step.operationId === operationId);
      if (state?.status === 'started') state.status = 'answered';
      show(task);
    },
    { description: 'From a supervisor: its answer is there' },
  );
  setHandler(taskReportQuery, () => reportOf(task), { description: 'Where each step stands' });
  setHandler(taskReportUpdate, () => freshReport(task), {
    description: 'Where each step stands, read from the ledger now',
  });
  setHandler(
    taskAnswerUpdate,
    () =>
      CancellationScope.nonCancellable(async () => {
        await condition(() => task.isFinished || isAnswered(task));
        await lookAt(task, task.steps);
        return reportOf(task);
      }),
    { description: 'Waits for the answers of all steps; ending the wait cancels nothing' },
  );
}

function freshReport(task: TaskState): Promise<TaskReport> {
  return CancellationScope.nonCancellable(async () => {
    await lookAt(task, task.steps);
    show(task);
    return reportOf(task);
  });
}

function refuseBadMessage(raw: unknown): void {
  const { problems } = readMessage(raw);
  if (problems.length > 0) {
    throw ApplicationFailure.nonRetryable(describeProblems(problems), 'INVALID_INPUT');
  }
}

function wishForStop(task: TaskState, wish: OperatorMessage): void {
  task.wish ??= wish;
}
