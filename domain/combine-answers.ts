// Combine answers
// ---------------
// A provider that states status and charge apart is asked both, and what it said is recorded as one
// observation: an attempt must not change its phase twice in every round of questions.
//
// Invariants:
//   Q1. A final charge is recorded whatever the status said, and the status only beside it.
//   Q2. An unanswered status is never covered up by a running total.
//   Q3. Work that is seen running needs no charge yet; work that has ended without one is unknown.

import type { Amount } from './money.js';
import type { Charge, Execution, Observation, UnknownReason } from './observation.js';

/** What to record, in this order. `floorAmount` is the floor that the ledger has already. */
export function combineAnswers(
  status: Observation,
  charge: Observation,
  floorAmount: Amount,
): readonly Observation[] {
  const execution = status.kind === 'status' ? executionOf(status.status) : undefined;
  if (charge.kind === 'no_answer' && execution !== undefined && execution !== 'running') {
    return [{ ...charge, execution, ...reasonOf(charge, execution) }];
  }
  if (charge.kind !== 'charge') return [status];
  const both: Charge = {
    ...charge,
    ...(execution !== undefined && { execution }),
    ...(status.kind !== 'not_accepted' &&
      status.remoteId !== undefined && { remoteId: status.remoteId }),
  };
  if (charge.basis === 'final') return [both];
  if (status.kind === 'status' && execution !== undefined) return [both];
  // A floor that is known already is no news, and must not look like an answer to the other question.
  const isNews = charge.amount === undefined || charge.amount > floorAmount;
  return isNews ? [charge, status] : [status];
}

/** That work has ended without a stated charge says more than that the charge was not found. */
function reasonOf(
  charge: Extract<Observation, { kind: 'no_answer' }>,
  execution: string,
): { readonly reason: UnknownReason; readonly detail: string } {
  const isSilence = charge.reason === 'no_answer' || charge.reason === 'not_found';
  return {
    reason: isSilence ? 'terminal_without_charge' : charge.reason,
    detail: `${execution}, charge: ${charge.detail}`,
  };
}

function executionOf(
  status: Extract<Observation, { kind: 'status' }>['status'],
): Execution | undefined {
  switch (status) {
    case 'running':
    case 'completed':
    case 'failed':
    case 'cancelled':
      return status;
    case 'not_started':
    case 'unknown':
      return undefined;
  }
}
