// Task handle
// -----------
// One agent task, as whoever started it holds it.

import {
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  type WorkflowHandle,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { DEFAULT_TASK_QUEUE, taskWorkflowId } from '../domain/identity.js';
import type { OperatorMessage } from '../domain/operator-message.js';
import { type AgentTaskInput, readAgentTaskInput } from '../domain/task-input.js';
import type { TaskReport } from '../domain/task-report.js';
import type { Problem } from '../domain/input-fields.js';
import {
  requestCancelSignal,
  taskAnswerUpdate,
  taskReportQuery,
  taskReportUpdate,
} from '../workflows/messages.js';
import type { HoldfastClientOptions } from './options.js';

export type TaskStarted =
  | { readonly status: 'started' }
  /** A task of that id was started before, whatever became of it: an id is used once. */
  | { readonly status: 'exists' }
  | { readonly status: 'invalid'; readonly problems: readonly Problem[] };

export interface TaskHandle {
  readonly workflowId: string;
  start(): Promise<TaskStarted>;
  /** Waits until every step has its answer; undefined after `timeoutMs`, and the task goes on. */
  awaitAnswer(timeoutMs: number): Promise<TaskReport | undefined>;
  /** Where each step stands, read from the ledger now; of a task that has ended, how it ended. */
  report(): Promise<TaskReport>;
  /** Asks every step to stop. Its operations go on until their charges are known. */
  cancel(message: OperatorMessage): Promise<void>;
  /** Waits until all operations have ended. Throws ApplicationFailure INVALID_INPUT for a bad plan. */
  result(): Promise<TaskReport>;
}

type AgentTask = (input: unknown) => Promise<TaskReport>;

export function createTaskHandle(
  { client, taskQueue = DEFAULT_TASK_QUEUE }: HoldfastClientOptions,
  input: AgentTaskInput & { readonly taskId: string },
): TaskHandle {
  const workflowId = taskWorkflowId(input.taskId);
  const handle = (): WorkflowHandle<AgentTask> => client.workflow.getHandle<AgentTask>(workflowId);
  return {
    workflowId,
    async start() {
      const read = readAgentTaskInput(input, workflowId);
      if (read.kind === 'problems') return { status: 'invalid', problems: read.problems };
      try {
        await client.workflow.start<AgentTask>('agentTask', {
          workflowId,
          taskQueue,
          args: [input],
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          staticSummary: `task ${input.taskId} of ${input.accountId}, ${input.steps.length} steps`,
        });
        return { status: 'started' };
      } catch (error) {
        if (error instanceof WorkflowExecutionAlreadyStartedError) return { status: 'exists' };
        throw error;
      }
    },
    async awaitAnswer(timeoutMs) {
      try {
        return await client.withDeadline(Date.now() + timeoutMs, () =>
          handle().executeUpdate(taskAnswerUpdate),
        );
      } catch (error) {
        if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return undefined;
        if (hasClosed(error)) return handle().query(taskReportQuery);
        throw error;
      }
    },
    async report() {
      try {
        return await handle().executeUpdate(taskReportUpdate);
      } catch (error) {
        // It has ended, or ends while it is asked: then its last words are the newest.
        if (!hasClosed(error)) throw error;
        return handle().query(taskReportQuery);
      }
    },
    cancel: (message) => handle().signal(requestCancelSignal, message),
    result: () => resultOf(handle()),
  };
}

/** An update cannot reach a run that has closed; whether one was there at all the query says. */
function hasClosed(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError || error instanceof WorkflowUpdateFailedError;
}

/** A task that was to stop closes as Canceled, and tells how its steps ended all the same. */
async function resultOf(handle: WorkflowHandle<AgentTask>): Promise<TaskReport> {
  try {
    return await handle.result();
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    if (error.cause instanceof ApplicationFailure) throw error.cause;
    return handle.query(taskReportQuery);
  }
}
