// Messages
// --------
// What one can say to a supervisor, and ask it. The names are wire format: never rename, add.

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { LlmCallInput } from '../domain/call-input.js';
import type { RemoteJobInput } from '../domain/job-input.js';
import type { CancelState } from '../domain/operation.js';
import type { StopReport } from '../domain/stop.js';
import type { TaskReport } from '../domain/task-report.js';
import type { AnswerStatus, OperationResult } from '../domain/operation-result.js';
import type { Refusal } from '../domain/refusal.js';
import type { AmountJson, Unit } from '../domain/money.js';

export interface AdmitRequest {
  /** Names this asking. A repeat after a deadline keeps it, a new ask after a refusal has a new one. */
  readonly askId: string;
  /** What is asked for: where it differs from what is being served, the ledger compares the terms. */
  readonly input?: LlmCallInput | RemoteJobInput;
}

export type AdmitVerdict =
  | {
      readonly status: 'admitted';
      readonly operationKey: string;
      readonly heldAmount: AmountJson;
      readonly unit: Unit;
      readonly route: string;
    }
  | { readonly status: 'closed'; readonly result: OperationResult }
  | { readonly status: 'refused'; readonly refusal: Refusal }
  | { readonly status: 'invalid'; readonly message: string }
  | { readonly status: 'unavailable'; readonly reason: string };

/** An answer that is known before the operation has ended, or with its end. */
export interface AnswerKnown {
  readonly status: AnswerStatus;
  readonly answerRef: string | null;
  readonly result: OperationResult | null;
}

/** The wish is stored, or came after the end. What became of it is said by the report. */
export interface CancelAnswered {
  readonly status: 'requested' | 'closed';
  readonly cancel: CancelState;
  readonly report: StopReport | null;
}

export interface TimelineEntry {
  readonly at: string;
  readonly what: string;
}

/** Where a task stands, step by step. */
export const taskReportQuery = defineQuery<TaskReport>('taskReport');
/** The same, read from the ledger at this moment. */
export const taskReportUpdate = defineUpdate<TaskReport>('taskReportUpdate');
/** Waits until every step has its answer; what it cost may be known later. */
export const taskAnswerUpdate = defineUpdate<TaskReport>('taskAnswer');
/** From a supervisor to its task: its answer is there, before its charge is. */
export const childAnsweredSignal = defineSignal<[unknown]>('childAnswered');
export const admitUpdate = defineUpdate<AdmitVerdict, [AdmitRequest]>('admit');
export const awaitAnswerUpdate = defineUpdate<AnswerKnown>('awaitAnswer');
export const lookUpNowSignal = defineSignal<[unknown]>('lookUpNow');
export const lookUpNowUpdate = defineUpdate<string, [unknown]>('lookUpNowUpdate');
export const requestCancelSignal = defineSignal<[unknown]>('requestCancel');
export const requestCancelUpdate = defineUpdate<CancelAnswered, [unknown]>('requestCancelUpdate');
export const explainQuery = defineQuery<string>('explain');
/** How it ended; null while it has not. */
export const resultQuery = defineQuery<OperationResult | null>('result');
export const timelineQuery = defineQuery<TimelineEntry[]>('timeline');
