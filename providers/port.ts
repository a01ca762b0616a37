// ProviderPort
// ------------
// What the supervisor needs of a provider. An adapter turns one vendor's HTTP into observations and
// knows nothing of holds, budgets or workflows. It moves no money and retries nothing.
//
// Contract:
//   A1. `charge` and `not_accepted` are returned only when the vendor said so, or, for
//       `no_connection`, when not one byte of the request can have left.
//   A2. Everything else is `no_answer`: a timeout, a 5xx, an unreadable body, a lookup's 404.
//   A3. The idempotency key is sent exactly as given; an adapter never makes one.
//   A4. An adapter returns; it throws only for a bug.

import type { Unit } from '../domain/money.js';
import type { Evidence, Observation, Usage } from '../domain/observation.js';

export type Grade = 'documented' | 'observed' | 'assumed';

export interface Claim<T> {
  readonly value: T;
  /** `assumed` never ends a hold. */
  readonly grade: Grade;
  readonly source: string;
}

/** What may be asked of a provider, as graded claims. */
export interface ProviderCapabilities {
  readonly lookUpByKey: Claim<'none' | 'exact'>;
  /** Whether work that goes on can be asked to stop; what became of it is said by its status alone. */
  readonly cancel: Claim<'none' | 'best_effort'>;
  readonly replayIsDeduplicated: Claim<boolean>;
  /** For how long a key is known there, counted from its first request; 0 where repeats are not told apart. */
  readonly dedupeWindowMs: Claim<number>;
  /** For how long work can be asked about, in milliseconds; null where nothing is said of it. */
  readonly retentionMs: Claim<number | null>;
  readonly chargeEvidence: Claim<readonly ('in_response' | 'on_lookup')[]>;
  /** Statuses that, as the first answer and in the provider's own error form, prove `documented_rejection`. */
  readonly rejections: Claim<readonly number[]>;
  /** Who prices: the provider states an amount, or our price book prices its usage. */
  readonly pricedBy: 'provider' | 'price_book';
}

export interface DispatchRequest {
  readonly idempotencyKey: string;
  /** The provider's own name of the model. */
  readonly model: string;
  /** The caller's request as JSON text, without model and bounds. */
  readonly requestText: string;
  /** The bound that was priced; the adapter sends it as the provider's own limit. */
  readonly bound: Usage;
  readonly unit: Unit;
  /**
   * Asked immediately before connecting and again immediately before the first byte: false means
   * that the right to send has lapsed, and nothing may leave.
   */
  readonly maySend: () => boolean;
}

/** The answer for the caller. Its text goes to the body store, never into a history or a log. */
export interface Answer {
  readonly text: string;
}

export interface Dispatched {
  /** `late`: the right to send lapsed before the first byte; nothing was sent. */
  readonly kind: 'observed' | 'late';
  readonly observation: Observation;
  readonly answer?: Answer;
}

export interface LookUpRequest {
  readonly idempotencyKey: string;
  readonly remoteId?: string;
  readonly unit: Unit;
}

/** What was answered to a wish to stop. None of these says that the work has ended. */
export interface CancelAnswer {
  readonly answer: 'acknowledged' | 'refused' | 'unsupported' | 'no_answer';
  /** For people: what happened, without bodies or secrets. */
  readonly detail: string;
  readonly evidence: Evidence;
}

export interface ProviderPort {
  readonly name: string;
  readonly capabilities: ProviderCapabilities;
  /** One send, under one key. `signal` ends the waiting, not the remote work. */
  dispatch(request: DispatchRequest, signal: AbortSignal): Promise<Dispatched>;
  /** One question: status and charge of the attempt. `no_answer` where nothing can be asked. */
  lookUp(request: LookUpRequest, signal: AbortSignal): Promise<Observation>;
  /** Where `lookUp` states the status alone: the charge, asked for by itself. */
  readonly lookUpCharge?: (request: LookUpRequest, signal: AbortSignal) => Promise<Observation>;
  /** Asks for a stop, once. Only for work that a lookup under our own key has shown. */
  readonly cancel?: (request: LookUpRequest, signal: AbortSignal) => Promise<CancelAnswer>;
  /**
   * The same question where no receipt can be looked up: the create once more, with the key and the
   * body of the first. Its refusals are `no_answer`: only the first answer can say that no work began.
   */
  replay(request: DispatchRequest, signal: AbortSignal): Promise<Observation>;
}
