// Snapshot
// --------
// Where an operation stands, as the ledger answers it: what a supervisor loads before it acts. All
// JSON, so it can cross Temporal; amounts are digits of the smallest unit, times are ISO 8601.

import type { AmountJson, Unit } from './money.js';
import type { AttemptPhase, CancelState, OperationOutcome, OperationState } from './operation.js';
import type { ExecutionStatus } from './observation.js';
import type { Chain, RouteTimings } from './route.js';
import type { Refusal } from './refusal.js';

export interface AttemptSnapshot {
  readonly attemptNo: number;
  readonly attemptKey: string;
  readonly route: string;
  readonly provider: string;
  readonly phase: AttemptPhase;
  readonly unit: Unit;
  readonly boundAmount: AmountJson;
  readonly heldAmount: AmountJson;
  readonly floorAmount: AmountJson;
  /** Null until a charge is confirmed; null is not zero. */
  readonly chargedAmount: AmountJson | null;
  readonly proof: string | null;
  readonly pricedBy: 'provider' | 'price_book' | null;
  readonly reasons: readonly { readonly reason: string; readonly at: string }[];
  readonly unknownSince: string | null;
  readonly unknownMs: number | null;
  readonly remoteId: string | null;
  readonly questionCount: number;
  readonly lastAnswer: string | null;
  readonly nextQuestionDueAt: string | null;
  readonly dispatchBeforePassed: boolean;
  readonly timings: RouteTimings;
}

export interface OperationSnapshot {
  readonly operationKey: string;
  readonly accountId: string;
  readonly operationId: string;
  readonly kind: 'call' | 'job';
  readonly state: OperationState;
  readonly outcome: OperationOutcome | null;
  readonly cancel: CancelState;
  readonly executionStatus: ExecutionStatus;
  /** Digest of the answer's text in the body store. */
  readonly answerRef: string | null;
  readonly budgetIds: readonly string[];
  readonly chain: Chain;
  /** Why no further route may be tried now; null when one may. */
  readonly fallbackProblem: string | null;
  readonly attempts: readonly AttemptSnapshot[];
  readonly refusal: Refusal | null;
}
