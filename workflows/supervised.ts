// Supervised
// ----------
// For people who write their own agents as workflows: a supervised call or job in one line. The child
// outlives its parent in every way, since what it watches may be charged all the same; a parent that is
// run again adopts it instead of buying twice; and a wish to stop is passed on as a wish.

import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowCancellationType,
  type ChildWorkflowHandle,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  proxyActivities,
  startChild,
} from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { Asked, FollowActivities } from '../activities/contract.js';
import type { LlmCallInput } from '../domain/call-input.js';
import {
  DEFAULT_TASK_QUEUE,
  type OperationKind,
  operationWorkflowId,
  supervisorOf,
} from '../domain/identity.js';
import type { RemoteJobInput } from '../domain/job-input.js';
import type { OperatorMessage } from '../domain/operator-message.js';
import { type OperationResult, refusedResult, resultOf } from '../domain/operation-result.js';
import { requestCancelSignal } from './messages.js';
import { ledgerSteps } from './steps.js';
import { taskQueuesOf } from './task-queues.js';

export interface SupervisedOptions {
  /** The queue that Holdfast's workers serve, where it is not `holdfast`. */
  readonly taskQueue?: string;
}

export interface SupervisedOperation {
  readonly workflowId: string;
  readonly operationId: string;
  /** Its settlement. It waits for as long as that takes, and survives the end of any one supervisor. */
  result(): Promise<OperationResult>;
  /** Asks for a stop. What became of it is in the result; asking is not stopping. */
  requestCancel(message: OperatorMessage): Promise<void>;
}

type WithId<Input> = Input & { readonly operationId: string };
type Supervisor = (input: unknown) => Promise<OperationResult>;

/** `const answer = await superviseCall({ accountId, operationId, route, maxTokens, request });` */
export async function superviseCall(
  input: WithId<LlmCallInput>,
  options: SupervisedOptions = {},
): Promise<OperationResult> {
  return (await startSupervised('call', input, options)).result();
}

/** `const job = await superviseJob({ accountId, operationId, route, bound: { ticks: 20 }, request });` */
export async function superviseJob(
  input: WithId<RemoteJobInput>,
  options: SupervisedOptions = {},
): Promise<OperationResult> {
  return (await startSupervised('job', input, options)).result();
}

/** Starts it, or adopts the one that was started before, and answers at once. */
export function startSupervised(
  kind: OperationKind,
  input: WithId<LlmCallInput> | WithId<RemoteJobInput>,
  { taskQueue = DEFAULT_TASK_QUEUE }: SupervisedOptions = {},
): Promise<SupervisedOperation> {
  const { accountId, operationId } = input;
  const workflowId = operationWorkflowId(kind, accountId, operationId);
  const start = (policy: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE'): Promise<Child | undefined> =>
    startOnce({ kind, input, workflowId, taskQueue, policy });
  // A parent that is cancelled while it starts one must not leave it half started.
  return CancellationScope.nonCancellable(async () => {
    let child = await start('REJECT_DUPLICATE');
    const followed = {
      asked: { kind, input } as Asked,
      accountId,
      operationId,
      workflowId,
      taskQueue,
    };
    return {
      workflowId,
      operationId,
      result: () =>
        CancellationScope.nonCancellable(async () => {
          for (;;) {
            const heard = child === undefined ? undefined : await heardFrom(child);
            if (heard !== undefined) return heard;
            const known = await follow(followed);
            if (known.kind === 'ended') return resultOf(known.snapshot);
            // The id was used for something else before: that is not ours to take.
            if (known.kind === 'refused') return refusedResult(known.refusal);
            // It ended and the ledger has no word of it: it was refused, and may be asked for again.
            child = await start('ALLOW_DUPLICATE');
          }
        }),
      requestCancel: (message) => passOnWish(followed, message),
    };
  });
}

type Child = ChildWorkflowHandle<Supervisor>;

async function startOnce(given: {
  readonly kind: OperationKind;
  readonly input: object;
  readonly workflowId: string;
  readonly taskQueue: string;
  readonly policy: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE';
}): Promise<Child | undefined> {
  const { kind, input, workflowId, taskQueue, policy } = given;
  try {
    return await startChild<Supervisor>(supervisorOf(kind), {
      workflowId,
      taskQueue,
      args: [input],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      cancellationType: ChildWorkflowCancellationType.ABANDON,
      workflowIdReusePolicy: policy,
      workflowTaskTimeout: '5 seconds',
      staticSummary: workflowId,
    });
  } catch (error) {
    // Started by an earlier run of the parent: it is adopted.
    if (error instanceof WorkflowExecutionAlreadyStartedError) return undefined;
    throw error;
  }
}

/** Undefined where its supervisor was ended by force or cancelled: the ledger knows how it ended. */
async function heardFrom(child: Child): Promise<OperationResult | undefined> {
  try {
    return await child.result();
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    // Its input was refused, which asking again would not change.
    if (cause instanceof ApplicationFailure && cause.type === 'INVALID_INPUT') throw error;
    return undefined;
  }
}

interface Following {
  readonly asked: Asked;
  readonly accountId: string;
  readonly operationId: string;
  readonly workflowId: string;
  readonly taskQueue: string;
}

async function follow(followed: Following): ReturnType<FollowActivities['followOperation']> {
  const { taskQueue, asked, ...operation } = followed;
  const { followOperation } = proxyActivities<FollowActivities>({
    taskQueue: taskQueuesOf(taskQueue).reconcile,
    startToCloseTimeout: '30 seconds',
    scheduleToCloseTimeout: '1 day',
    cancellationType: ActivityCancellationType.ABANDON,
    retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
  });
  for (;;) {
    try {
      return await followOperation({ ...asked, ...operation });
    } catch (error) {
      // The day is over, and the operation is not.
      if (!(error instanceof ActivityFailure)) throw error;
    }
  }
}

/** Where its supervisor is gone the wish is stored all the same: whoever asks next passes it on. */
function passOnWish(followed: Following, message: OperatorMessage): Promise<void> {
  return CancellationScope.nonCancellable(async () => {
    try {
      await getExternalWorkflowHandle(followed.workflowId).signal(requestCancelSignal, message);
    } catch (error) {
      const isGone =
        error instanceof ApplicationFailure && error.type === 'ExternalWorkflowExecutionNotFound';
      if (!isGone) throw error;
      const { accountId, operationId } = followed;
      const steps = ledgerSteps(followed.taskQueue);
      const stored = await steps.findOperation({ accountId, operationId });
      if (stored === null || stored.outcome !== null) return;
      await steps.requestCancel({ operationKey: stored.operationKey, ...message });
    }
  });
}
