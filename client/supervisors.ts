// Supervisors
// -----------
// The workflows that watch operations, as Temporal itself knows them: whether one lives, and how one
// is started again. A description of a run is exact; a list lags, and is never asked.

import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { type OperationKind, supervisorOf } from '../domain/identity.js';

/** A workflow task that failed this often will not come right by itself. */
const STUCK_TASK_ATTEMPT = 3;
const WORKFLOW_TASK_TIMEOUT = '5 seconds';

interface Found {
  readonly supervisor: 'alive' | 'paused' | 'missing' | 'stuck';
  readonly why: string;
}

interface Supervised {
  readonly kind: OperationKind;
  readonly accountId: string;
  readonly operationId: string;
  readonly workflowId: string;
}

export interface Supervisors {
  look(workflowId: string): Promise<Found>;
  startAgain(operation: Supervised, options: { readonly replaces: boolean }): Promise<void>;
}

export function createSupervisors(client: Client, taskQueue: string): Supervisors {
  return {
    look: (workflowId) => look(client, workflowId),
    async startAgain({ kind, accountId, operationId, workflowId }, { replaces }) {
      await client.workflow.start(supervisorOf(kind), {
        workflowId,
        taskQueue,
        args: [{ accountId, operationId, stored: true }],
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        workflowIdConflictPolicy: replaces ? 'TERMINATE_EXISTING' : 'USE_EXISTING',
        workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
        staticSummary: `${kind} ${operationId} of ${accountId}, taken up again`,
      });
    },
  };
}

async function look(client: Client, workflowId: string): Promise<Found> {
  try {
    const { status, raw } = await client.workflow.getHandle(workflowId).describe();
    if (status.name !== 'RUNNING' && status.name !== 'PAUSED') {
      return { supervisor: 'missing', why: `its workflow is ${status.name.toLowerCase()}` };
    }
    const isPaused = (raw.pendingActivities ?? []).some((each) => each.paused === true);
    if (status.name === 'PAUSED' || isPaused) {
      return { supervisor: 'paused', why: 'somebody has paused it' };
    }
    const attempt = raw.pendingWorkflowTask?.attempt ?? 0;
    if (attempt >= STUCK_TASK_ATTEMPT) {
      return { supervisor: 'stuck', why: `its workflow task has failed ${attempt - 1} times` };
    }
    return { supervisor: 'alive', why: 'its workflow runs' };
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return { supervisor: 'missing', why: 'there is no such workflow' };
  }
}
