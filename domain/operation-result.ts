// Operation result
// ----------------
// How a supervised call or job ended, and what its caller hears meanwhile.

import type { AmountJson, Unit } from './money.js';
import type { Refusal } from './refusal.js';
import type { CancelState } from './operation.js';
import type { ExecutionStatus } from './observation.js';
import type { OperationSnapshot } from './snapshot.js';

export interface OperationResult {
  readonly outcome: 'settled' | 'released' | 'refused' | 'stopped' | 'unavailable';
  readonly operationKey: string | null;
  readonly unit: Unit | null;
  /** Null when nothing was charged or nothing is known; 0 is a charge on a free route. */
  readonly chargedAmount: AmountJson | null;
  readonly answerRef: string | null;
  readonly route: string | null;
  readonly attemptCount: number;
  /** What proved that nothing was charged, for `released`. */
  readonly proof: string | null;
  readonly lastAnswer: string | null;
  /** What was observed of the work itself; it is never guessed from a charge. */
  readonly execution: ExecutionStatus;
  /** What became of a wish to stop. */
  readonly cancel: CancelState;
  readonly refusal: Refusal | null;
}

export type AnswerStatus =
  | 'answered'
  | 'settled_without_answer'
  | 'rejected'
  | 'stopped'
  | 'refused'
  | 'unavailable'
  | 'unknown';

export function resultOf(snapshot: OperationSnapshot): OperationResult {
  const { attempts } = snapshot;
  const last = attempts.at(-1);
  const charged = attempts.filter((attempt) => attempt.chargedAmount !== null);
  const total = charged.reduce((sum, attempt) => sum + BigInt(attempt.chargedAmount ?? '0'), 0n);
  return {
    outcome: snapshot.outcome ?? 'released',
    operationKey: snapshot.operationKey,
    unit: last?.unit ?? null,
    chargedAmount: charged.length === 0 ? null : (total.toString() as AmountJson),
    answerRef: snapshot.answerRef,
    route: (charged.at(-1) ?? last)?.route ?? null,
    attemptCount: attempts.length,
    proof: charged.length === 0 ? (last?.proof ?? null) : null,
    lastAnswer: last?.lastAnswer ?? null,
    execution: snapshot.executionStatus,
    cancel: snapshot.cancel,
    refusal: snapshot.outcome === 'refused' ? snapshot.refusal : null,
  };
}

export function refusedResult(refusal: Refusal): OperationResult {
  return { ...NOTHING, outcome: 'refused', refusal };
}

export function unavailableResult(): OperationResult {
  return { ...NOTHING, outcome: 'unavailable' };
}

const NOTHING = {
  operationKey: null,
  unit: null,
  chargedAmount: null,
  answerRef: null,
  route: null,
  attemptCount: 0,
  proof: null,
  lastAnswer: null,
  execution: 'not_started',
  cancel: 'none',
  refusal: null,
} as const;

/** What a caller hears of an answer, once the operation has ended. */
export function answerStatusOf(result: OperationResult): AnswerStatus {
  switch (result.outcome) {
    case 'settled':
      return result.answerRef === null ? 'settled_without_answer' : 'answered';
    case 'released':
      return result.answerRef === null ? 'rejected' : 'answered';
    case 'refused':
    case 'stopped':
    case 'unavailable':
      return result.outcome;
  }
}
