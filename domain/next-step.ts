// Next step
// ---------
// What a supervisor does next, from where the ledger says the operation stands. It never assumes
// that it is new.
//
// Invariants:
//   S1. An attempt whose fence was taken is asked about, never sent.
//   S2. A route outside the admitted chain is never called.
//   S3. No next attempt after a charge or a wish to cancel; none beside an unknown one, unless the
//       chain allows it.
//   S4. A supervisor without a request only withdraws and asks.

import { isEnded } from './operation.js';
import type { RouteOffer } from './route.js';
import type { AttemptSnapshot, OperationSnapshot } from './snapshot.js';

export type NextStep =
  | { readonly kind: 'dispatch'; readonly attempt: AttemptSnapshot }
  | { readonly kind: 'withdraw'; readonly reason: string }
  | { readonly kind: 'next_attempt'; readonly afterAttempt: number; readonly offer: RouteOffer }
  | { readonly kind: 'ask' }
  | { readonly kind: 'done' };

/**
 * What a supervisor may do. One that was started again for a stored operation has no request: it
 * sends nothing and opens nothing.
 */
export type SupervisorRights = 'all' | 'asks_only';

export function nextStep(snapshot: OperationSnapshot, rights: SupervisorRights = 'all'): NextStep {
  const step = stepWithRequest(snapshot);
  if (rights === 'all') return step;
  switch (step.kind) {
    case 'dispatch':
      return { kind: 'withdraw', reason: 'nobody is left who could send it' };
    case 'next_attempt':
      return { kind: snapshot.outcome === null ? 'ask' : 'done' };
    case 'withdraw':
    case 'ask':
    case 'done':
      return step;
  }
}

function stepWithRequest(snapshot: OperationSnapshot): NextStep {
  const { attempts } = snapshot;
  const newest = newestAttempt(snapshot);
  const isCharged = attempts.some((attempt) => attempt.phase === 'charged');

  if (newest.phase === 'not_sent') {
    if (isCharged) return { kind: 'withdraw', reason: 'another attempt was charged' };
    if (snapshot.cancel !== 'none') return { kind: 'withdraw', reason: 'cancel requested' };
    if (newest.dispatchBeforePassed)
      return { kind: 'withdraw', reason: 'its time to be sent has passed' };
    return { kind: 'dispatch', attempt: newest };
  }
  if (newest.phase === 'withdrawn' && snapshot.outcome === 'released') {
    const again = offersAfter(snapshot).sameRoute;
    const isAlone = attempts.every((attempt) => attempt.phase === 'withdrawn');
    if (again !== undefined && isAlone && snapshot.fallbackProblem === null) {
      return { kind: 'next_attempt', afterAttempt: newest.attemptNo, offer: again };
    }
  }
  if (attempts.every((attempt) => isEnded(attempt.phase))) return { kind: 'done' };
  if (newest.phase === 'unknown' && mayGoOnBeside(snapshot)) {
    const offer = offersAfter(snapshot).nextRoute;
    if (offer !== undefined) return { kind: 'next_attempt', afterAttempt: newest.attemptNo, offer };
  }
  return { kind: 'ask' };
}

function mayGoOnBeside(snapshot: OperationSnapshot): boolean {
  return (
    snapshot.chain.fallbackWhileUnknown === 'allow' &&
    snapshot.fallbackProblem === null &&
    snapshot.refusal === null
  );
}

export interface Offers {
  /** The same route once more: only after a proof that nothing was sent. */
  readonly sameRoute?: RouteOffer;
  /** The next route of the chain: after any proof that nothing was charged. */
  readonly nextRoute?: RouteOffer;
}

/** Where the operation may go on to if its newest attempt proves to have cost nothing. */
export function offersAfter(snapshot: OperationSnapshot): Offers {
  const { chain } = snapshot;
  const newest = newestAttempt(snapshot);
  const index = chain.routes.findIndex((offer) => offer.route === newest.route);
  const sends = snapshot.attempts.filter((attempt) => attempt.route === newest.route).length;
  const same = sends <= chain.sameRouteAttempts ? chain.routes[index] : undefined;
  const next = index < 0 ? undefined : chain.routes[index + 1];
  return {
    ...(same !== undefined && { sameRoute: same }),
    ...(next !== undefined && { nextRoute: next }),
  };
}

/** Throws RangeError for an operation without an attempt: the ledger stores none. */
export function newestAttempt(snapshot: OperationSnapshot): AttemptSnapshot {
  const newest = snapshot.attempts.at(-1);
  if (newest === undefined)
    throw new RangeError(`operation ${snapshot.operationKey} has no attempt`);
  return newest;
}
