// Known attempts
// --------------
// Whatever reached the provider belongs to an attempt that the ledger had stored before, was executed at most once,
// and was not sent after it had been withdrawn.

import {
  describeTime,
  groupBy,
  type Journal,
  type OracleTruth,
  type TrueRequest,
} from './facts.js';

const WITHDRAWALS = new Set(['withdrawn', 'given_up']);

/** A sentence for each request or charge that should not have been. */
export function findUnknownWork(truth: OracleTruth, journal: Journal): string[] {
  const known = new Set(journal.attempts.map((attempt) => attempt.attemptKey));
  const isUnknown = ({ key }: { key: string | null }): boolean => key === null || !known.has(key);
  const strangers = truth.requests.filter(isUnknown);
  const strangerSeqs = new Set(strangers.map((request) => request.seq));
  return [
    ...strangers.map(
      (request) => `${describe(request)}: ${request.outcome}, and the ledger has no such attempt`,
    ),
    ...truth.charges
      .filter((charge) => isUnknown(charge) && !strangerSeqs.has(charge.seq))
      .map(
        (charge) =>
          `${describeTime(charge.at)} key ${charge.key ?? 'none'}: a charge without an attempt`,
      ),
    ...findRepeated(truth),
    ...findSentAfterWithdrawal(truth, journal),
  ];
}

function findRepeated({ requests }: OracleTruth): string[] {
  const accepted = requests.filter(({ outcome, key }) => outcome === 'accepted' && key !== null);
  return [...groupBy(accepted, (request) => request.key).values()].flatMap(([, ...again]) =>
    again.map((request) => `${describe(request)}: executed again`),
  );
}

/**
 * The provider's stamp is cut off to whole milliseconds, so a request that came after a withdrawal in the same one
 * looks older than it is and is not told; one that came before never looks younger.
 */
function findSentAfterWithdrawal(truth: OracleTruth, journal: Journal): string[] {
  const withdrawn = new Set(
    journal.attempts.flatMap(({ attemptKey, phase }) =>
      phase === 'withdrawn' ? [attemptKey] : [],
    ),
  );
  const endOf = new Map(
    journal.events.flatMap(({ attemptKey, kind, at }): [string, number][] =>
      attemptKey !== null && withdrawn.has(attemptKey) && WITHDRAWALS.has(kind)
        ? [[attemptKey, at]]
        : [],
    ),
  );
  return truth.requests.flatMap((request) => {
    const end = request.key === null ? undefined : endOf.get(request.key);
    if (end === undefined || request.receivedAt < end) return [];
    return [`${describe(request)}: sent after it was withdrawn at ${describeTime(end)}`];
  });
}

function describe({ receivedAt, key }: TrueRequest): string {
  return `${describeTime(receivedAt)} key ${key ?? 'none'}`;
}
