// Holdfast client
// ---------------
// The typed front door: start a supervised call, a job or a task, and hear of it, through Temporal
// alone. A caller's timeout detaches; it cancels nothing.

import type { LlmCallInput } from '../domain/call-input.js';
import type { RemoteJobInput } from '../domain/job-input.js';
import type { AgentTaskInput } from '../domain/task-input.js';
import { createOperationHandle, type OperationHandle } from './operation-handle.js';
import type { HoldfastClientOptions } from './options.js';
import { createTaskHandle, type TaskHandle } from './task-handle.js';

export interface HoldfastClient {
  call(input: LlmCallInput & { readonly operationId: string }): OperationHandle;
  job(input: RemoteJobInput & { readonly operationId: string }): OperationHandle;
  /** A plan of calls and jobs; `taskId` names it for ever. */
  task(input: AgentTaskInput & { readonly taskId: string }): TaskHandle;
}

export function createHoldfastClient(options: HoldfastClientOptions): HoldfastClient {
  return {
    call: (input) => createOperationHandle(options, 'call', input),
    job: (input) => createOperationHandle(options, 'job', input),
    task: (input) => createTaskHandle(options, input),
  };
}
