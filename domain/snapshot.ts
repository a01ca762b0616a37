// Snapshot
// --------
// Where an operation stands, as the ledger answers it: what a supervisor loads before it acts. All
// JSON, so it can cross Temporal; amounts are digits of the smallest unit, times are ISO 8601.

import type { AmountJson, Unit } from './money.js';
import type { AttemptPhase, CancelState, OperationOutcome, OperationState } from './operation.js';
import type { Alert } from './alert.js';
import type { ExecutionStatus } from './observation.js';
import type { OperationKind } from './identity.js';
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
  /** Until then, in milliseconds by the ledger's clock; negative when it is overdue. */
  readonly dueInMs: number | null;
  readonly dispatchBeforePassed: boolean;
  /** Since its time to be sent was over, in milliseconds; null before the fence was taken. */
  readonly sentMs: number | null;
  readonly timings: RouteTimings;
}

export interface OperationSnapshot {
  readonly operationKey: string;
  readonly accountId: string;
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly taskId: string | null;
  readonly workflowId: string;
  readonly state: OperationState;
  readonly outcome: OperationOutcome | null;
  readonly cancel: CancelState;
  /** How often the wish was sent to the provider, and what came back last. */
  readonly cancelSentCount: number;
  readonly cancelLastAnswer: string | null;
  readonly executionStatus: ExecutionStatus;
  /** Digest of the answer's text in the body store. */
  readonly answerRef: string | null;
  readonly budgetIds: readonly string[];
  readonly chain: Chain;
  /** Why no further route may be tried now; null when one may. */
  readonly fallbackProblem: string | null;
  readonly attempts: readonly AttemptSnapshot[];
  readonly refusal: Refusal | null;
  /** Somebody must look: the runbook says what at. */
  readonly needsOperator: boolean;
  readonly alerts: readonly Alert[];
}
