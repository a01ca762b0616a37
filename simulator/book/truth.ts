import type { Book } from './book.js';
import { formatCredits, parseCredits } from './credits.js';
import type { CancelEntry, Stamp } from './entries.js';
import type { Job } from './jobs-state.js';
import type { BookState, Execution, RequestRow } from './state.js';

export type TruthTotals = {
  received: number;
  accepted: number;
  charged: string;
  /** The cancels that were received, and the jobs that ended by one. */
  cancels: number;
  cancelled: number;
};
export type KeyTotals = TruthTotals & { executions: number };

type Started = Execution | Job;
type StartedBySeq = ReadonlyMap<number, Started>;

/** The whole book, as an outside judge needs it. */
export function describeTruth(book: Book): Record<string, unknown> {
  const { state, clock } = book;
  const requests = [...state.requests.values()].sort((a, b) => a.seq - b.seq);
  const started: Started[] = [...state.executions.values(), ...state.jobs.values()];
  const bySeq = new Map(started.map((each) => [each.seq, each]));
  return {
    at: new Date(clock.nowMs()).toISOString(),
    realAt: new Date().toISOString(),
    requests: requests.map((row) => describeRequest(row, bySeq.get(row.seq))),
    totals: sumUp(requests, bySeq, state.cancels),
    byKey: describeKeys(state, requests, bySeq),
    charges: state.charges.map((charge) => {
      const { seq, id, total, before, cause } = charge;
      const { key = null, model = null } = bySeq.get(seq) ?? {};
      const delta = formatCredits(parseCredits(total) - parseCredits(before));
      return { ...stampOf(charge), seq, key, model, id, total, delta, cause };
    }),
    lookups: state.lookups.map((lookup) => {
      const { seq, question, key, id, answer } = lookup;
      return { ...stampOf(lookup), seq, question, key, id, answer };
    }),
    reports: state.reports.map((report) => {
      const { seq, via, key, id, status, usage, charge, final } = report;
      return { ...stampOf(report), seq, via, key, id, status, usage, charge, final };
    }),
    cancels: state.cancels.map((cancel) => {
      const { seq, key, id, answer } = cancel;
      const honouredAtTick = honouredAtTickOf(cancel, state);
      return { ...stampOf(cancel), seq, key, id, answer, honouredAtTick };
    }),
  };
}

function stampOf({ tick, at, realAt }: Stamp): Stamp {
  return { tick, at, realAt };
}

/** How many ticks the job had when it ended by this wish, which others may have come before. */
function honouredAtTickOf({ id, dueTicks }: CancelEntry, { jobs }: BookState): number | null {
  const job = id === null || dueTicks === null ? undefined : jobs.get(id);
  return job?.state === 'cancelled' ? job.ticks : null;
}

function describeRequest(row: RequestRow, started: Started | undefined): object {
  const { seq, receivedRealAt, key, model, maxTokens, limitTicks } = row;
  const { id, outcome, reason, executionNo } = row;
  return {
    ...stampOf(row),
    seq,
    receivedRealAt,
    key,
    model,
    maxTokens,
    limitTicks,
    id,
    outcome,
    reason,
    state: started?.state ?? null,
    bill: started?.bill ?? null,
    charged: started?.charged ?? '0',
    chargedAt: started?.chargedAt ?? null,
    chargedRealAt: started?.chargedRealAt ?? null,
    executionNo,
    answered:
      row.answered === null ? null : { ...stampOf(row.answered), status: row.answered.status },
  };
}

function sumUp(
  requests: readonly RequestRow[],
  bySeq: StartedBySeq,
  cancels: readonly CancelEntry[],
): TruthTotals {
  const started = requests.flatMap(({ seq }) => bySeq.get(seq) ?? []);
  const charged = started.reduce((sum, each) => sum + parseCredits(each.charged), 0n);
  return {
    received: requests.length,
    accepted: started.length,
    charged: formatCredits(charged),
    cancels: cancels.length,
    cancelled: started.filter(({ state }) => state === 'cancelled').length,
  };
}

/** Requests without a key stand under "null". */
function describeKeys(
  { cancels }: BookState,
  requests: readonly RequestRow[],
  bySeq: StartedBySeq,
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
      const own = cancels.filter((cancel) => cancel.id !== null && (cancel.key ?? 'null') === key);
      const totals = sumUp(rows, bySeq, own);
      return [key, { ...totals, executions: totals.accepted }];
    }),
  );
}
