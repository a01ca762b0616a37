// Sends run on the workflows' own queue, with slots of their own; the ledger's steps and the asking
// have queues beside it, so that a flood of sends never starves the asking.

export interface TaskQueues {
  readonly workflows: string;
  readonly ledger: string;
  readonly reconcile: string;
}

export function taskQueuesOf(workflows: string): TaskQueues {
  return { workflows, ledger: `${workflows}-ledger`, reconcile: `${workflows}-reconcile` };
}
