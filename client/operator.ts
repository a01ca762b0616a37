// Operator
// --------
// What an operator says to a supervisor. The ledger has the wish already; this only wakes whoever
// passes it on, and says so where nobody is there.

import { type Client, isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import type { OperatorMessage } from '../domain/operator-message.js';
import { lookUpNowSignal, requestCancelSignal } from '../workflows/messages.js';

export type Told = 'told' | 'no_supervisor';

/** Throws for a Temporal that cannot be reached. */
export async function tellSupervisor(
  client: Client,
  workflowId: string,
  wish: { readonly what: 'requestCancel' | 'lookUpNow'; readonly message: OperatorMessage },
): Promise<Told> {
  const signal = wish.what === 'requestCancel' ? requestCancelSignal : lookUpNowSignal;
  try {
    await client.workflow.getHandle(workflowId).signal(signal, wish.message);
    return 'told';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'no_supervisor';
    throw error;
  }
}

/** Whether Temporal itself could not be reached, or refused to answer. */
export function isUnreachable(error: unknown): boolean {
  return isGrpcServiceError(error);
}
