// Contract
// --------
// What workflows see of the activities: types only. Every ledger step may run twice, and the second
// time changes nothing; `dispatch` may run twice, and the fence lets one of them send.

import type { LlmCallInput } from '../domain/call-input.js';
import type { Problem } from '../domain/input-fields.js';
import type { RemoteJobInput } from '../domain/job-input.js';
import type { SupervisorRights } from '../domain/next-step.js';
import type { ObservationJson } from '../domain/observation.js';
import type { Unit } from '../domain/money.js';
import type { Refusal } from '../domain/refusal.js';
import type { RouteOffer } from '../domain/route.js';
import type { OperationSnapshot } from '../domain/snapshot.js';

/** What was asked for: a call or a job, and in whose words. */
export type Asked =
  | { readonly kind: 'call'; readonly input: LlmCallInput }
  | { readonly kind: 'job'; readonly input: RemoteJobInput };

export type PlaceHoldInput = Asked & {
  readonly operationId: string;
  readonly workflowId: string;
  readonly askId: string;
};

export type PlaceHoldResult =
  | { readonly kind: 'admitted' | 'closed'; readonly snapshot: OperationSnapshot }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] }
  | { readonly kind: 'unavailable'; readonly reason: string };

export interface DispatchInput {
  readonly operationKey: string;
  readonly attemptNo: number;
  readonly askId: string;
  readonly heartbeatMs: number;
  /** Where to go on to, in the transaction that ends this attempt uncharged. */
  readonly sameRoute?: RouteOffer;
  readonly nextRoute?: RouteOffer;
}

export type DispatchResult =
  | { readonly kind: 'recorded'; readonly snapshot: OperationSnapshot }
  /** The ledger could not be reached before the fence was known to be taken: nothing was sent. */
  | { readonly kind: 'unavailable'; readonly claim: string }
  | { readonly kind: 'untrusted' }
  /** The worker had to stop before the ledger could be told. Usage, ids and digest, never text. */
  | { readonly kind: 'handed_over'; readonly record: HandedOver };

export interface HandedOver {
  readonly operationKey: string;
  readonly attemptNo: number;
  readonly claim: string;
  readonly askId: string;
  readonly observation: ObservationJson;
}

export interface AskInput {
  readonly accountId: string;
  readonly operationId: string;
  /** What the workflow shows; whatever differs ends the asking for now, so that it can be shown. */
  readonly shown: string;
  readonly rights: SupervisorRights;
  /** Somebody wants it asked now, due or not; the round is then answered with whatever it brought. */
  readonly isWoken: boolean;
}

export interface OperationRef {
  readonly accountId: string;
  readonly operationId: string;
}

/** Who wants it stopped, and why; `requestId` makes a repeat of the same wish no second one. */
export interface CancelWish {
  readonly by: string;
  readonly reason?: string;
  readonly requestId?: string;
}

export interface LedgerActivities {
  placeHold(request: PlaceHoldInput): Promise<PlaceHoldResult>;
  readOperation(operation: OperationRef): Promise<OperationSnapshot>;
  /** Null where the ledger has none of that id. */
  findOperation(operation: OperationRef): Promise<OperationSnapshot | null>;
  markUnknown(request: { operationKey: string; detail: string }): Promise<OperationSnapshot>;
  recordHandedOver(record: HandedOver): Promise<OperationSnapshot>;
  nextAttempt(request: {
    operationKey: string;
    afterAttempt: number;
    offer: RouteOffer;
    askId: string;
  }): Promise<OperationSnapshot>;
  withdraw(request: { operationKey: string; reason: string }): Promise<OperationSnapshot>;
  requestCancel(request: CancelWish & { operationKey: string }): Promise<OperationSnapshot>;
  /** Null where the ask never reached the ledger. */
  endAsk(
    request: OperationRef & { askId: string; reason: string; claim?: string },
  ): Promise<OperationSnapshot | null>;
}

export interface TaskActivities {
  /** Opens the task's own budget, where it has one; a problem names what stands in the way. */
  openTask(request: {
    accountId: string;
    taskId: string;
    budget: { unit: Unit; limit: string };
  }): Promise<{ readonly problem: string | null }>;
  /** Where the task's operations stand; null for one that the ledger does not have. */
  readTask(request: {
    accountId: string;
    operationIds: readonly string[];
  }): Promise<readonly (OperationSnapshot | null)[]>;
}

export type Followed =
  | { readonly kind: 'ended'; readonly snapshot: OperationSnapshot }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'missing' };

export interface FollowActivities {
  /**
   * Waits for the end of an operation that was started before, by the ledger: of the very one that is
   * asked for, since an id may have been used for something else. Missing: the ledger has none of
   * that id and nobody is about to place it, since it was refused, or never asked for.
   */
  followOperation(request: Asked & OperationRef & { workflowId: string }): Promise<Followed>;
}

export interface SweepActivities {
  sweep(options: SweepOptions): Promise<SweepSummary>;
}

/** How a sweep goes about; all of it has defaults. */
export interface SweepOptions {
  /** How long a question may be overdue before anybody is missed, in milliseconds. */
  readonly graceMs?: number;
  /** At most so many supervisors are started in a minute, by all sweepers together. */
  readonly perMinute?: number;
  /** How many operations are looked at. */
  readonly countMax?: number;
  /** Says what would be done, and does nothing. */
  readonly isDryRun?: boolean;
}

export type SweptStatus =
  | 'owned'
  | 'paused'
  | 'restarted'
  | 'restarted_stuck'
  | 'would_restart'
  | 'restarted_before'
  | 'too_many'
  | 'not_overdue';

export interface SweepSummary {
  readonly swept: readonly {
    readonly operationKey: string;
    readonly workflowId: string;
    readonly overdueMs: number;
    /** Digits of the smallest unit. */
    readonly heldAmount: string;
    readonly unit: Unit;
    readonly status: SweptStatus;
    /** For people: what was found. */
    readonly why: string;
  }[];
}

export interface DispatchActivities {
  dispatch(input: DispatchInput): Promise<DispatchResult>;
}

export interface ReconcileActivities {
  /** Asks until something changes; throws CHARGE_NOT_KNOWN_YET with the delay to wait. */
  ask(input: AskInput): Promise<OperationSnapshot>;
}

/** Details of a CHARGE_NOT_KNOWN_YET failure. */
export interface NotKnownYet {
  readonly nextDelayMs: number;
}
