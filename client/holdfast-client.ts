// Holdfast client
// ---------------
// The typed front door: start a supervised call and hear of it, through Temporal alone. A caller's
// timeout detaches; it cancels nothing.

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
import { describeProblems, type LlmCallInput, readLlmCallInput } from '../domain/call-input.js';
import { type AnswerStatus, answerStatusOf, type LlmCallResult } from '../domain/call-result.js';
import { HoldfastError } from '../domain/failure.js';
import { callWorkflowId, DEFAULT_TASK_QUEUE } from '../domain/identity.js';
import type { llmCall } from '../workflows/llm-call.js';
import {
  type AdmitVerdict,
  type AnswerKnown,
  admitUpdate,
  awaitAnswerUpdate,
  explainQuery,
  lookUpNowSignal,
  type TimelineEntry,
  timelineQuery,
} from '../workflows/messages.js';

export interface BodyStorePort {
  put(text: string): Promise<string>;
  get(reference: string): Promise<string | undefined>;
}

export interface HoldfastClientOptions {
  readonly client: Client;
  /** With one, request and answer stay out of the workflow history. */
  readonly bodyStore?: BodyStorePort;
  /** The workers' queue, where it is not `holdfast`. */
  readonly taskQueue?: string;
}

/** `unknown`: the deadline passed; ask again with the same handle, and the same ask is answered. */
export type AdmitAnswer = AdmitVerdict | { readonly status: 'unknown' };

export interface AwaitedAnswer {
  readonly status: AnswerStatus;
  readonly answerRef: string | null;
  /** The answer's text, where a body store was given. */
  readonly text?: string;
  readonly result: LlmCallResult | null;
}

/** A stop was asked for, and the workflow closed as Canceled; the ledger has the settlement. */
export interface StoppedResult {
  readonly outcome: 'closed_after_cancel';
}

export interface CallHandle {
  readonly workflowId: string;
  /** Starts the call, or joins it, and answers whether it was admitted: one round trip. */
  admit(options?: { readonly askId?: string; readonly timeoutMs?: number }): Promise<AdmitAnswer>;
  /** Waits for the answer; `unknown` after `timeoutMs`, and the call goes on. */
  awaitAnswer(timeoutMs: number): Promise<AwaitedAnswer>;
  /** Waits for the settlement, however long it takes. */
  result(): Promise<LlmCallResult | StoppedResult>;
  explain(): Promise<string>;
  timeline(): Promise<readonly TimelineEntry[]>;
  /** Has the provider asked again now. */
  lookUpNow(reason: string): Promise<void>;
}

export interface HoldfastClient {
  call(input: LlmCallInput & { readonly operationId: string }): CallHandle;
}

const ADMIT_TIMEOUT_MS = 10_000;
/** A worker that was killed is taken over within seconds. */
const WORKFLOW_TASK_TIMEOUT = '5 seconds';

export function createHoldfastClient(options: HoldfastClientOptions): HoldfastClient {
  return { call: (input) => createCallHandle(options, input) };
}

function createCallHandle(
  options: HoldfastClientOptions,
  input: LlmCallInput & { readonly operationId: string },
): CallHandle {
  const { client } = options;
  const workflowId = callWorkflowId(input.accountId, input.operationId);
  const newest = (): WorkflowHandle<typeof llmCall> => client.workflow.getHandle(workflowId);
  let askId = globalThis.crypto.randomUUID() as string;
  return {
    workflowId,
    async admit({ askId: named, timeoutMs = ADMIT_TIMEOUT_MS } = {}) {
      askId = named ?? askId;
      const read = readLlmCallInput(input);
      if (read.kind === 'problems') {
        return { status: 'invalid', message: describeProblems(read.problems) };
      }
      const kept = await byReference(options, input);
      if (kept === undefined) return { status: 'unavailable', reason: 'ledger_unavailable' };
      const prepared = { ...kept, askId };
      const answer = await admit(client, {
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
  };
}

/** Undefined when the body store cannot be reached: then nothing was asked for. */
async function byReference(
  { bodyStore }: HoldfastClientOptions,
  input: LlmCallInput,
): Promise<LlmCallInput | undefined> {
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
    readonly input: LlmCallInput & { readonly askId: string };
    readonly timeoutMs: number;
    readonly taskQueue: string;
  },
): Promise<AdmitAnswer> {
  const { workflowId, input, timeoutMs, taskQueue } = ask;
  const { askId } = input;
  try {
    return await client.withDeadline(Date.now() + timeoutMs, () =>
      client.workflow.executeUpdateWithStart(admitUpdate, {
        args: [{ askId, input }],
        updateId: `admit/${input.operationId ?? ''}/${askId}`,
        startWorkflowOperation: new WithStartWorkflowOperation<typeof llmCall>('llmCall', {
          workflowId,
          taskQueue,
          args: [input],
          workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
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
  handle: WorkflowHandle<typeof llmCall>,
  timeoutMs: number,
): Promise<AwaitedAnswer> {
  const known = await answerWithin(options.client, handle, timeoutMs);
  if (known === undefined) return { status: 'unknown', answerRef: null, result: null };
  const text = known.answerRef === null ? undefined : await options.bodyStore?.get(known.answerRef);
  return { ...known, ...(text !== undefined && { text }) };
}

async function answerWithin(
  client: Client,
  handle: WorkflowHandle<typeof llmCall>,
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
  return result.outcome === 'closed_after_cancel'
    ? { status: 'stopped', answerRef: null, result: null }
    : { status: answerStatusOf(result), answerRef: result.answerRef, result };
}

/** Throws ApplicationFailure INVALID_INPUT for an input that was refused as wrong. */
async function resultOf(
  handle: WorkflowHandle<typeof llmCall>,
): Promise<LlmCallResult | StoppedResult> {
  try {
    return await handle.result();
  } catch (error) {
    if (error instanceof WorkflowFailedError) {
      if (error.cause instanceof CancelledFailure) return { outcome: 'closed_after_cancel' };
      if (error.cause instanceof ApplicationFailure) throw error.cause;
    }
    throw error;
  }
}
