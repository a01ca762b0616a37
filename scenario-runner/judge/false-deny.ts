// False-deny
// ----------
// A refusal for want of room, while there was room: by its own numbers, or by what the product could have known.
// It has three seconds to book what it was told completely.

import {
  describeTime,
  groupBy,
  type Journal,
  type JournalRefusal,
  type Micros,
  type OracleTruth,
  type TrueCharge,
  type TrueReport,
} from './facts.js';
import { Bound, listMovements } from './movements.js';

const TIME_TO_BOOK_US = 3_000_000;
const FOR_WANT_OF_ROOM = new Set(['exceeds_available', 'exceeds_limit']);
const FINAL_STATUSES = new Set(['completed', 'cancelled', 'failed']);
/** What the provider documents as refused before any work; after any other refusal a hold is kept with reason. */
const REFUSED_BEFORE_WORK = new Set([401, 503]);

/** A sentence for each refusal that should not have been. */
export function findFalseDenials(truth: OracleTruth, journal: Journal): string[] {
  const knowledge = gatherKnowledge(truth, journal);
  return journal.refusals.flatMap((refusal) => {
    const { needed, available, limit, budgetId } = refusal;
    if (!FOR_WANT_OF_ROOM.has(refusal.reason)) return [];
    const where = `${describeTime(refusal.at)} operation ${refusal.operationKey} on budget "${budgetId ?? ''}"`;
    if (needed === null || available === null || limit === null || budgetId === null) {
      return [`${where}: refused with ${refusal.reason} and without its numbers`];
    }
    const needs = `needed ${needed.toString()}`;
    if (available >= needed) {
      return [`${where}: ${needs}, and its own available was ${available.toString()}`];
    }
    const room = limit - usedBy(knowledge, budgetId, refusal);
    return room < needed ? [] : [`${where}: ${needs}, and there was room for ${room.toString()}`];
  });
}

interface HeldLine {
  readonly at: Micros;
  readonly attemptKey: string;
  readonly budgetId: string;
  readonly held: bigint;
  readonly isReturn: boolean;
}

interface Knowledge {
  readonly linesOf: ReadonlyMap<string, readonly HeldLine[]>;
  readonly earlierOf: ReadonlyMap<string, bigint>;
  readonly reportsOf: ReadonlyMap<string | null, readonly TrueReport[]>;
  readonly requestsOf: ReadonlyMap<string | null, OracleTruth['requests']>;
  readonly chargesOf: ReadonlyMap<string | null, readonly TrueCharge[]>;
}

function gatherKnowledge(truth: OracleTruth, journal: Journal): Knowledge {
  const lines = listMovements(journal).flatMap(({ at, attemptKey, kind, changes }) =>
    changes.map(({ budgetId, held }): HeldLine => {
      return { at, attemptKey, budgetId, held, isReturn: kind === 'hold_returned' };
    }),
  );
  return {
    linesOf: groupBy(lines, (line) => line.budgetId),
    earlierOf: new Map(journal.earlier.map(({ budgetId, amount }) => [budgetId, amount])),
    reportsOf: groupBy(truth.reports, (report) => report.key),
    requestsOf: groupBy(truth.requests, (request) => request.key),
    chargesOf: groupBy(truth.charges, (charge) => charge.key),
  };
}

/** What a product that books within its time had to count as used when it refused. */
function usedBy(knowledge: Knowledge, budgetId: string, refusal: JournalRefusal): bigint {
  const lines = (knowledge.linesOf.get(budgetId) ?? []).filter((line) => line.at <= refusal.at);
  const attempts = groupBy(lines, (line) => line.attemptKey);
  return [...attempts].reduce(
    (sum, [key, own]) =>
      sum + costOf(knowledge, { key, lines: own, until: refusal.at }, refusal.at - TIME_TO_BOOK_US),
    knowledge.earlierOf.get(budgetId) ?? 0n,
  );
}

function costOf(
  { reportsOf, requestsOf, chargesOf }: Knowledge,
  attempt: { readonly key: string; readonly lines: readonly HeldLine[]; readonly until: Micros },
  by: Micros,
): bigint {
  const charge = newestCharge(reportsOf.get(attempt.key) ?? [], by);
  if (charge !== null) return charge;
  const requests = requestsOf.get(attempt.key) ?? [];
  if (requests.length > 0 && requests.every((request) => isRefusedBeforeWork(request, by)))
    return 0n;
  const isReturned = attempt.lines.some((line) => line.isReturn && line.at <= by);
  if (isReturned && requests.every((request) => request.outcome !== 'accepted')) return 0n;
  const bound = new Bound();
  for (const line of attempt.lines) bound.add(line.held);
  // A provider may have charged more than the bound already, and the product may know it.
  const charged = totalOf(chargesOf.get(attempt.key) ?? [], attempt.until);
  return charged > bound.amount ? charged : bound.amount;
}

/** The newest total of each execution, summed. */
function totalOf(charges: readonly TrueCharge[], until: Micros): bigint {
  const totals = new Map<number, bigint>();
  for (const charge of charges) if (charge.at <= until) totals.set(charge.seq, charge.total);
  return [...totals.values()].reduce((sum, total) => sum + total, 0n);
}

function newestCharge(reports: readonly TrueReport[], by: Micros): bigint | null {
  const known = reports.filter(
    ({ at, status, charge, final }) =>
      at <= by && charge !== null && final && FINAL_STATUSES.has(status),
  );
  return known.sort((a, b) => a.at - b.at).at(-1)?.charge ?? null;
}

function isRefusedBeforeWork(
  { outcome, answered }: OracleTruth['requests'][number],
  by: Micros,
): boolean {
  if (outcome !== 'refused' || answered === null) return false;
  return answered.at <= by && REFUSED_BEFORE_WORK.has(answered.status);
}
