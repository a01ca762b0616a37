// One queue for each kind of work, so that a flood of sends never starves the asking.

export const WORKFLOW_QUEUE = 'holdfast';
export const LEDGER_QUEUE = 'holdfast-ledger';
export const DISPATCH_QUEUE = 'holdfast-dispatch';
export const RECONCILE_QUEUE = 'holdfast-reconcile';
