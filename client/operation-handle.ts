// Operation handle
// ----------------
// One call or job, as its caller holds it: start it or join it, wait, look, and ask for a stop. A
// caller's timeout detaches; it cancels nothing.

import {
  type Client,
  WithStartWorkflowOperation,
  WorkflowFailedError,
  type WorkflowHandle,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { type LlmCallInput, readLlmCallInput } from '../domain/call-input.js';
import { HoldfastError } from '../domain/failure.js';
import {
  DEFAULT_TASK_QUEUE,
  type OperationKind,
  operationWorkflowId,
  supervisorOf,
} from '../domain/identity.js';
import { describeProblems } from '../domain/input-fields.js';
import { readRemoteJobInput, type RemoteJobInput } from '../domain/job-input.js';
import type { OperatorMessage } from '../domain/operator-message.js';
import {
  type AnswerStatus,
  answerStatusOf,
  type OperationResult,
} from '../domain/operation-result.js';
import {
  type AdmitVerdict,
  type AnswerKnown,
  admitUpdate,
  awaitAnswerUpdate,
  type CancelAnswered,
  explainQuery,
  lookUpNowSignal,
  requestCancelUpdate,
  resultQuery,
  type TimelineEntry,
  timelineQuery,
} from '../workflows/messages.js';
import type { HoldfastClientOptions } from './options.js';

/** `unknown`: the deadline passed; ask again with the same handle, and the same ask is answered. */
export type AdmitAnswer = AdmitVerdict | { readonly status: 'unknown' };

export interface AwaitedAnswer {
  readonly status: AnswerStatus;
  readonly answerRef: string | null;
  /** The answer's text, where a body store was given. */
  readonly text?: string;
  readonly result: OperationResult | null;
}

/** The workflow closed as Canceled and can tell nothing more; the ledger has the settlement. */
export interface ClosedAfterCancel {
  readonly outcome: 'closed_after_cancel';
}

export interface OperationHandle {
  readonly workflowId: string;
  /** Starts the call, or joins it, and answers whether it was admitted: one round trip. */
  admit(options?: { readonly askId?: string; readonly timeoutMs?: number }): Promise<AdmitAnswer>;
  /** Waits for the answer; `unknown` after `timeoutMs`, and the call goes on. */
  awaitAnswer(timeoutMs: number): Promise<AwaitedAnswer>;
  /** Waits for the settlement, however long it takes. */
  result(): Promise<OperationResult | ClosedAfterCancel>;
  explain(): Promise<string>;
  timeline(): Promise<readonly TimelineEntry[]>;
  /** Has the provider asked again now. */
  lookUpNow(reason: string): Promise<void>;
  /** Stores a wish to stop, and answers once it is stored. What became of it is in the result. */
  requestCancel(message: Required<OperatorMessage>): Promise<CancelAnswered>;
}

export type OperationInput = (LlmCallInput | RemoteJobInput) & { readonly operationId: string };
type Supervisor = (input: unknown) => Promise<OperationResult>;
type Handle = WorkflowHandle<Supervisor>;

const ADMIT_TIMEOUT_MS = 10_000;
/** A worker that was killed is taken over within seconds. */
const WORKFLOW_TASK_TIMEOUT = '5 seconds';

export function createOperationHandle(
  options: HoldfastClientOptions,
  kind: OperationKind,
  input: OperationInput,
): OperationHandle {
  const { client } = options;
  const workflowId = operationWorkflowId(kind, input.accountId, input.operationId);
  const newest = (): Handle => client.workflow.getHandle<Supervisor>(workflowId);
  let askId = globalThis.crypto.randomUUID() as string;
  return {
    workflowId,
    async admit({ askId: named, timeoutMs = ADMIT_TIMEOUT_MS } = {}) {
      askId = named ?? askId;
      const read = kind === 'call' ? readLlmCallInput(input) : readRemoteJobInput(input);
      if (read.kind === 'problems') {
        return { status: 'invalid', message: describeProblems(read.problems) };
      }
      const kept = await byReference(options, input);
      if (kept === undefined) return { status: 'unavailable', reason: 'ledger_unavailable' };
      const prepared = { ...kept, askId };
      const answer = await admit(client, {
        kind,
        workflowId,
        input: prepared,
        timeoutMs,
        taskQueue: options.taskQueue ?? DEFAULT_TASK_QUEUE,
      });
      // A later asking after this one has ended is a new one.
      if (answer.status === 'refused' || answer.status === 'unavailable') {
        askId = globalThis.crypto.randomUUID();
      }
      return answer;
    },
    awaitAnswer: (timeoutMs) => awaitAnswer(options, newest(), timeoutMs),
    result: () => resultOf(newest()),
    explain: () => newest().query(explainQuery),
    timeline: () => newest().query(timelineQuery),
    lookUpNow: (reason) => newest().signal(lookUpNowSignal, { reason }),
    requestCancel: (message) =>
      newest().executeUpdate(requestCancelUpdate, {
        args: [message],
        updateId: `cancel/${message.requestId}`,
      }),
  };
}

/** Undefined when the body store cannot be reached: then nothing was asked for. */
async function byReference(
  { bodyStore }: HoldfastClientOptions,
  input: OperationInput,
): Promise<OperationInput | undefined> {
  if (bodyStore === undefined || input.request === undefined) return input;
  const { request, ...rest } = input;
  try {
    return { ...rest, requestRef: await bodyStore.put(JSON.stringify(request)) };
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'LEDGER_UNAVAILABLE') return undefined;
    throw error;
  }
}

async function admit(
  client: Client,
  ask: {
    readonly workflowId: string;
    readonly kind: OperationKind;
    readonly input: OperationInput & { readonly askId: string };
    readonly timeoutMs: number;
    readonly taskQueue: string;
  },
): Promise<AdmitAnswer> {
  const { kind, workflowId, input, timeoutMs, taskQueue } = ask;
  const { askId } = input;
  try {
    return await client.withDeadline(Date.now() + timeoutMs, () =>
      client.workflow.executeUpdateWithStart(admitUpdate, {
        args: [{ askId, input }],
        updateId: `admit/${input.operationId}/${askId}`,
        startWorkflowOperation: new WithStartWorkflowOperation<Supervisor>(supervisorOf(kind), {
          workflowId,
          taskQueue,
          args: [input],
          workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
          staticSummary: `${kind} ${input.operationId} of ${input.accountId} on ${input.route}`,
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        }),
      }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return { status: 'unknown' };
    // The run closed while the question was on its way: nobody knows what it would have said.
    if (error instanceof WorkflowNotFoundError || error instanceof WorkflowUpdateFailedError) {
      return { status: 'unknown' };
    }
    throw error;
  }
}

async function awaitAnswer(
  options: HoldfastClientOptions,
  handle: Handle,
  timeoutMs: number,
): Promise<AwaitedAnswer> {
  const known = await answerWithin(options.client, handle, timeoutMs);
  if (known === undefined) return { status: 'unknown', answerRef: null, result: null };
  const text = known.answerRef === null ? undefined : await options.bodyStore?.get(known.answerRef);
  return { ...known, ...(text !== undefined && { text }) };
}

async function answerWithin(
  client: Client,
  handle: Handle,
  timeoutMs: number,
): Promise<AnswerKnown | undefined> {
  const until = Date.now() + timeoutMs;
  try {
    for (;;) {
      const known = await client.withDeadline(until, () => handle.executeUpdate(awaitAnswerUpdate));
      // Only a run that continues as new says so: the next one is asked.
      if (known.status !== 'unknown') return known;
    }
  } catch (error) {
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return undefined;
    const hasClosed =
      error instanceof WorkflowNotFoundError || error instanceof WorkflowUpdateFailedError;
    if (!hasClosed) throw error;
  }
  const result = await resultOf(handle);
  // That a stop was asked for says nothing of what became of it.
  return result.outcome === 'closed_after_cancel'
    ? { status: 'unknown', answerRef: null, result: null }
    : { status: answerStatusOf(result), answerRef: result.answerRef, result };
}

/** Throws ApplicationFailure INVALID_INPUT for an input that was refused as wrong. */
async function resultOf(handle: Handle): Promise<OperationResult | ClosedAfterCancel> {
  try {
    return await handle.result();
  } catch (error) {
    if (error instanceof WorkflowFailedError) {
      if (error.cause instanceof CancelledFailure) return settlementOf(handle);
      if (error.cause instanceof ApplicationFailure) throw error.cause;
    }
    throw error;
  }
}

/** A run that closed as Canceled has settled first, and tells how while its history is there. */
async function settlementOf(handle: Handle): Promise<OperationResult | ClosedAfterCancel> {
  try {
    return (await handle.query(resultQuery)) ?? { outcome: 'closed_after_cancel' };
  } catch {
    // No worker is there to tell.
    return { outcome: 'closed_after_cancel' };
  }
}
