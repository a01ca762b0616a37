import type { Book } from './book.js';
import { formatCredits, parseCredits } from './credits.js';
import type { Stamp } from './entries.js';
import type { Execution, RequestRow } from './state.js';

export type TruthTotals = { received: number; accepted: number; charged: string };
export type KeyTotals = TruthTotals & { executions: number };

/** The whole book, as an outside judge needs it. */
export function describeTruth(book: Book): Record<string, unknown> {
  const { state, clock } = book;
  const requests = [...state.requests.values()].sort((a, b) => a.seq - b.seq);
  const bySeq = new Map([...state.executions.values()].map((each) => [each.seq, each]));
  return {
    at: new Date(clock.nowMs()).toISOString(),
    realAt: new Date().toISOString(),
    requests: requests.map((row) => describeRequest(row, bySeq.get(row.seq))),
    totals: sumUp(requests, bySeq),
    byKey: describeKeys(requests, bySeq),
    charges: state.charges.map((charge) => {
      const { seq, id, total, before, cause } = charge;
      const { key = null, model = null } = state.executions.get(id) ?? {};
      const delta = formatCredits(parseCredits(total) - parseCredits(before));
      return { ...stampOf(charge), seq, key, model, id, total, delta, cause };
    }),
    lookups: state.lookups.map((lookup) => {
      const { seq, key, id, answer } = lookup;
      return { ...stampOf(lookup), seq, key, id, answer };
    }),
    reports: state.reports.map((report) => {
      const { seq, via, key, id, status, usage, charge } = report;
      return { ...stampOf(report), seq, via, key, id, status, usage, charge };
    }),
  };
}

function stampOf({ tick, at, realAt }: Stamp): Stamp {
  return { tick, at, realAt };
}

function describeRequest(row: RequestRow, execution: Execution | undefined): object {
  const { seq, receivedRealAt, key, model, maxTokens, id, outcome, reason, executionNo } = row;
  return {
    ...stampOf(row),
    seq,
    receivedRealAt,
    key,
    model,
    maxTokens,
    id,
    outcome,
    reason,
    state: execution?.state ?? null,
    bill: execution?.bill ?? null,
    charged: execution?.charged ?? '0',
    chargedAt: execution?.chargedAt ?? null,
    chargedRealAt: execution?.chargedRealAt ?? null,
    executionNo,
    answered:
      row.answered === null ? null : { ...stampOf(row.answered), status: row.answered.status },
  };
}

function sumUp(
  requests: readonly RequestRow[],
  bySeq: ReadonlyMap<number, Execution>,
): TruthTotals {
  const executions = requests.flatMap(({ seq }) => bySeq.get(seq) ?? []);
  const charged = executions.reduce((sum, each) => sum + parseCredits(each.charged), 0n);
  return {
    received: requests.length,
    accepted: executions.length,
    charged: formatCredits(charged),
  };
}

/** Requests without a key stand under "null". */
function describeKeys(
  requests: readonly RequestRow[],
  bySeq: ReadonlyMap<number, Execution>,
): Record<string, KeyTotals> {
  const rowsByKey = new Map<string, RequestRow[]>();
  for (const row of requests) {
    const key = row.key ?? 'null';
    const rows = rowsByKey.get(key) ?? [];
    rows.push(row);
    rowsByKey.set(key, rows);
  }
  return Object.fromEntries(
    [...rowsByKey].map(([key, rows]) => {
      const totals = sumUp(rows, bySeq);
      return [key, { ...totals, executions: totals.accepted }];
    }),
  );
}
