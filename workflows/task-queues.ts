// Sends run on the workflows' own queue, with slots of their own; the ledger's steps and the asking
// have queues of theirs, so that a flood of sends never starves the asking.

export const WORKFLOW_QUEUE = 'holdfast';
export const LEDGER_QUEUE = 'holdfast-ledger';
export const RECONCILE_QUEUE = 'holdfast-reconcile';
