// UI links
// --------
// Lists of the Temporal UI, as addresses: each is a query over Holdfast's search attributes. They are
// for looking; nothing about money is decided from them.
//
// 1. A run that was closed by force, or went on as a new one, keeps the attributes that it had. Lists
//    leave it out: it would stay in them for ever, beside the run that supervises now.
// 2. What was closed by force while it held something has a list of its own. It stays there after the
//    sweeper has started another supervisor, since no query can compare two runs.

export interface UiLink {
  readonly name: string;
  readonly query: string;
  readonly url: string;
}

const STUCK_AFTER_MS = 15 * 60_000;

/** `now` fixes what "longer than 15 minutes" means: the UI's queries know no ages. */
export function describeUiLinks(
  base: string,
  namespace: string,
  facts: { readonly now: Date; readonly bigHoldAmount: bigint },
): readonly UiLink[] {
  const longAgo = new Date(facts.now.getTime() - STUCK_AFTER_MS).toISOString();
  const big = facts.bigHoldAmount > 0n ? facts.bigHoldAmount : 1n;
  const isOperation = 'WorkflowType IN ("llmCall", "remoteJob")';
  const isRunning = 'ExecutionStatus = "Running"';
  const queries: readonly (readonly [string, string])[] = [
    ['unknown', `HoldfastState = "unknown" AND ${isRunning}`],
    [
      'unknown for longer than 15 minutes',
      `HoldfastState = "unknown" AND HoldfastUnknownSince < "${longAgo}" AND ${isRunning}`,
    ],
    [
      'a wish to stop that is not confirmed',
      `HoldfastCancel IN ("requested", "acknowledged", "refused", "unsupported") AND ${isRunning}`,
    ],
    ['the biggest holds', `HoldfastHeldAmount >= ${big} AND ${isRunning}`],
    [
      'needs an operator',
      `HoldfastNeedsOperator = true AND ExecutionStatus IN ("Running", "Completed", "Canceled")`,
    ],
    [
      'a hold whose workflow was closed by force',
      `${isOperation} AND ExecutionStatus IN ("Terminated", "TimedOut", "Failed") AND HoldfastHeldAmount > 0`,
    ],
  ];
  const root = base.replace(/\/+$/, '');
  return queries.map(([name, query]) => ({
    name,
    query,
    url: `${root}/namespaces/${encodeURIComponent(namespace)}/workflows?query=${encodeURIComponent(query)}`,
  }));
}
