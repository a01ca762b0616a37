// Contract
// --------
// What workflows see of the activities: types only. Every ledger step may run twice, and the second
// time changes nothing; `dispatch` may run twice, and the fence lets one of them send.

import type { Problem, LlmCallInput } from '../domain/call-input.js';
import type { ObservationJson } from '../domain/observation.js';
import type { Refusal } from '../domain/refusal.js';
import type { RouteOffer } from '../domain/route.js';
import type { OperationSnapshot } from '../domain/snapshot.js';

export interface PlaceHoldInput {
  readonly input: LlmCallInput;
  readonly operationId: string;
  readonly workflowId: string;
  readonly askId: string;
}

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
  /** The state the workflow knows; another one ends the asking for now, so that it can be shown. */
  readonly knownState: string;
}

export interface OperationRef {
  readonly accountId: string;
  readonly operationId: string;
}

export interface LedgerActivities {
  placeHold(request: PlaceHoldInput): Promise<PlaceHoldResult>;
  readOperation(operation: OperationRef): Promise<OperationSnapshot>;
  markUnknown(request: { operationKey: string; detail: string }): Promise<OperationSnapshot>;
  recordHandedOver(record: HandedOver): Promise<OperationSnapshot>;
  nextAttempt(request: {
    operationKey: string;
    afterAttempt: number;
    offer: RouteOffer;
    askId: string;
  }): Promise<OperationSnapshot>;
  withdraw(request: { operationKey: string; reason: string }): Promise<OperationSnapshot>;
  requestCancel(request: { operationKey: string; by: string }): Promise<OperationSnapshot>;
  /** Null where the ask never reached the ledger. */
  endAsk(
    request: OperationRef & { askId: string; reason: string; claim?: string },
  ): Promise<OperationSnapshot | null>;
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
