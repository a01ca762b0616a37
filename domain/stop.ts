// Stop
// ----
// What may be said of a wish to stop. This is the only place that says "stopped": it holds the proof,
// which is the provider's own status or that nothing was ever sent. An answer to a cancel is no proof.

import { formatAmount } from './money.js';
import type { OperationSnapshot } from './snapshot.js';

/** What a person hears of one operation that somebody wants stopped. */
export const STOP_STATUSES = ['stopped', 'still_running', 'unknown', 'not_stopped'] as const;
export type StopStatus = (typeof STOP_STATUSES)[number];

export interface StopReport {
  readonly operationId: string;
  readonly status: StopStatus;
  /** Held for what may still be charged, in the smallest unit. */
  readonly heldAmount: string;
  /** Null until a charge is confirmed. */
  readonly chargedAmount: string | null;
  /** A whole sentence. */
  readonly text: string;
}

/** Nothing was sent, or the provider's own status says so. */
function isProvedStopped({ cancel, executionStatus, outcome }: OperationSnapshot): boolean {
  if (outcome === 'stopped') return true;
  return cancel === 'confirmed_stopped' && executionStatus === 'cancelled';
}

function statusOf(snapshot: OperationSnapshot): StopStatus {
  if (isProvedStopped(snapshot)) return 'stopped';
  if (snapshot.outcome !== null || snapshot.cancel === 'not_honoured') {
    const { executionStatus } = snapshot;
    const isOver = executionStatus === 'completed' || executionStatus === 'failed';
    return snapshot.outcome !== null || isOver ? 'not_stopped' : 'still_running';
  }
  return snapshot.state === 'unknown' ? 'unknown' : 'still_running';
}

export function reportStop(snapshot: OperationSnapshot): StopReport {
  const { attempts } = snapshot;
  const unit = attempts.at(-1)?.unit ?? 'credit';
  const held = attempts.reduce((sum, each) => sum + BigInt(each.heldAmount), 0n);
  const charges = attempts.flatMap(({ chargedAmount }) => chargedAmount ?? []);
  const charged = charges.reduce((sum, each) => sum + BigInt(each), 0n);
  const status = statusOf(snapshot);
  const money =
    charges.length > 0
      ? `charged ${formatAmount(charged, unit)}`
      : snapshot.outcome === null
        ? 'charge unknown'
        : 'nothing was charged';
  const rest = held > 0n ? `${money}, holds ${formatAmount(held, unit)}` : money;
  return {
    operationId: snapshot.operationId,
    status,
    heldAmount: held.toString(),
    chargedAmount: charges.length > 0 ? charged.toString() : null,
    text: `${WORDS[status]}; ${rest}`,
  };
}

const WORDS: Readonly<Record<StopStatus, string>> = {
  stopped: 'stopped',
  still_running: 'still running',
  unknown: 'UNKNOWN, it may be running and charging',
  not_stopped: 'it ended by itself, and was not stopped',
};

/** What became of the wish, in a sentence; undefined where there is none. */
export function describeCancel(snapshot: OperationSnapshot): string | undefined {
  const asked = 'A wish to stop it was made';
  const { cancel, cancelLastAnswer, cancelSentCount } = snapshot;
  switch (cancel) {
    case 'none':
      return undefined;
    case 'requested':
      return cancelSentCount === 0
        ? `${asked}; the provider was not told yet.`
        : `${asked} and sent ${cancelSentCount} times; no answer yet (${cancelLastAnswer ?? 'silence'}). It may still be running.`;
    case 'acknowledged':
      return `${asked}; the provider has heard it, which is no proof: only its status is.`;
    case 'refused':
      return `${asked}; the provider refused it, and it goes on under its hold.`;
    case 'unsupported':
      return `${asked}; this provider cannot be asked to stop work, and it goes on under its hold.`;
    case 'confirmed_stopped':
      return isProvedStopped(snapshot)
        ? `${asked}; it was stopped: ${snapshot.outcome === 'stopped' ? 'nothing was ever sent' : "the provider's own status says so"}.`
        : `${asked}; it is seen going on.`;
    case 'not_honoured':
      return `${asked}, and was not honoured: it ended by itself or goes on.`;
  }
}
