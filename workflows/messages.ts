// Messages
// --------
// What one can say to a supervisor, and ask it. The names are wire format: never rename, add.

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { LlmCallInput } from '../domain/call-input.js';
import type { AnswerStatus, LlmCallResult } from '../domain/call-result.js';
import type { Refusal } from '../domain/refusal.js';
import type { AmountJson, Unit } from '../domain/money.js';

export interface AdmitRequest {
  /** Names this asking. A repeat after a deadline keeps it, a new ask after a refusal has a new one. */
  readonly askId: string;
  /** What is asked for: where it differs from what is being served, the ledger compares the terms. */
  readonly input?: LlmCallInput;
}

export type AdmitVerdict =
  | {
      readonly status: 'admitted';
      readonly operationKey: string;
      readonly heldAmount: AmountJson;
      readonly unit: Unit;
      readonly route: string;
    }
  | { readonly status: 'closed'; readonly result: LlmCallResult }
  | { readonly status: 'refused'; readonly refusal: Refusal }
  | { readonly status: 'invalid'; readonly message: string }
  | { readonly status: 'unavailable'; readonly reason: string };

/** An answer that is known before the operation has ended, or with its end. */
export interface AnswerKnown {
  readonly status: AnswerStatus;
  readonly answerRef: string | null;
  readonly result: LlmCallResult | null;
}

export interface TimelineEntry {
  readonly at: string;
  readonly what: string;
}

export const admitUpdate = defineUpdate<AdmitVerdict, [AdmitRequest]>('admit');
export const awaitAnswerUpdate = defineUpdate<AnswerKnown>('awaitAnswer');
export const lookUpNowSignal = defineSignal<[unknown]>('lookUpNow');
export const explainQuery = defineQuery<string>('explain');
export const timelineQuery = defineQuery<TimelineEntry[]>('timeline');
