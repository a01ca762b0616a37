// Route
// -----
// What a worker offers the ledger for one send: where it would go, the bound that is priced and
// sent, and the timings. It is stored with the attempt, so a later supervisor needs no guess.

import type { Usage } from './observation.js';

/** Timings are data: they are admitted, stored and seen in the history. All in milliseconds. */
export interface RouteTimings {
  /** The longest that one send may wait for its answer. */
  readonly dispatchLimitMs: number;
  readonly heartbeatMs: number;
  /** How long an admitted attempt may wait for its send; after it the fence refuses. */
  readonly dispatchBeforeMs: number;
  readonly questionFirstMs: number;
  readonly questionMaxMs: number;
}

export const DEFAULT_TIMINGS: RouteTimings = {
  dispatchLimitMs: 600_000,
  heartbeatMs: 15_000,
  dispatchBeforeMs: 600_000,
  questionFirstMs: 2_000,
  questionMaxMs: 3_600_000,
};

export interface RouteOffer {
  readonly route: string;
  readonly provider: string;
  /** The provider's own name of the model. */
  readonly model: string;
  /** The bound by billable dimension. What is priced here is what is sent. */
  readonly bound: Usage;
  readonly paidAttemptsPerSend: number;
  readonly timings: RouteTimings;
}

/**
 * `each` holds the worst case of the route that is about to be sent. `upfront` holds the dearest of
 * the chain from the start, so that no fallback can be refused for money that others took meanwhile.
 */
export type FallbackHold = 'each' | 'upfront';

/** The routes an operation may use, in order; the first one is the route that was asked for. */
export interface Chain {
  readonly routes: readonly RouteOffer[];
  readonly fallbackWhileUnknown: 'wait' | 'allow';
  readonly fallbackHold: FallbackHold;
  /** How often the same route may be tried again after a proof that nothing was sent. */
  readonly sameRouteAttempts: number;
}

/** A route as it is configured: what a worker knows of it before anybody asks. */
export type RouteSettings = RouteSettingsOfAny &
  (
    | {
        readonly kind: 'call';
        /** The largest `maxTokens` that a caller may ask for. */
        readonly maxTokensMax: number;
      }
    | {
        readonly kind: 'job';
        /** The dimensions of a job's bound, each with the most that a caller may ask for. */
        readonly boundMax: Usage;
      }
  );

interface RouteSettingsOfAny {
  readonly route: string;
  readonly provider: string;
  readonly model: string;
  readonly paidAttemptsPerSend: number;
  readonly timings: RouteTimings;
  /** Routes to go on to, in order, when this one proves that nothing was charged. */
  readonly fallbacks: readonly string[];
  readonly fallbackWhileUnknown: 'wait' | 'allow';
  readonly fallbackHold: FallbackHold;
  readonly sameRouteAttempts: number;
}
