// Recording: what providers said, with capture and, where one is named, the next attempt.

import type { ObservationJson, UnknownReason } from '../domain/observation.js';
import type { RouteOffer } from '../domain/route.js';
import type { Ledger } from './connection.js';
import { type StepAnswer, stepAnswer } from './fence.js';
import { decodeAnswer } from './snapshot-row.js';

export interface ObservationRecord {
  readonly operationKey: string;
  readonly attemptNo: number;
  readonly via: 'dispatch' | 'lookup';
  readonly claim?: string;
  readonly observation: ObservationJson;
  /** The route to go on to if this ends the attempt uncharged. */
  readonly next?: RouteOffer;
  readonly ask?: string;
  readonly answer?: { readonly digest: string; readonly text: string };
  readonly questionDelayMs?: number;
}

export async function recordObservation(
  ledger: Ledger,
  record: ObservationRecord,
): Promise<StepAnswer> {
  const answer = await ledger.call('record_observation', {
    operation_key: record.operationKey,
    attempt_no: record.attemptNo,
    via: record.via,
    claim: record.claim,
    observation: record.observation,
    next: record.next,
    ask: record.ask,
    answer: record.answer,
    question_delay_ms: record.questionDelayMs,
  });
  return decodeAnswer(stepAnswer, answer);
}

export interface LocalEnd {
  readonly operationKey: string;
  readonly reason: UnknownReason;
  readonly detail: string;
}

/** A `sending` attempt whose local side ended without an answer becomes unknown; nothing else does. */
export async function markUnknown(ledger: Ledger, request: LocalEnd): Promise<StepAnswer> {
  const answer = await ledger.call('mark_unknown', {
    operation_key: request.operationKey,
    reason: request.reason,
    detail: request.detail,
  });
  return decodeAnswer(stepAnswer, answer);
}

export interface ChargeReport {
  readonly provider: string;
  readonly attemptKey: string;
  readonly report: Omit<Extract<ObservationJson, { kind: 'charge' }>, 'kind'>;
}

/** A total that arrives by itself. Status `unmatched` when no attempt has that key. */
export async function recordChargeReport(
  ledger: Ledger,
  report: ChargeReport,
): Promise<StepAnswer> {
  const answer = await ledger.call('record_charge_report', {
    provider: report.provider,
    attempt_key: report.attemptKey,
    report: report.report,
  });
  return decodeAnswer(stepAnswer, answer);
}
