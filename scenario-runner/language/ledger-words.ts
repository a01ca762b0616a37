// The ledger's own words that a file may use: a misspelt one would compare nothing, and pass.

import { z } from 'zod';
import { ALERT_KINDS } from '../../domain/alert.js';
import { UNKNOWN_REASONS } from '../../domain/observation.js';
import { ATTEMPT_PHASES } from '../../domain/operation.js';
import { REFUSAL_REASONS } from '../../domain/refusal.js';
import { STOP_STATUSES } from '../../domain/stop.js';

/** What the journal says of an operation; a test holds it to the functions that write it. */
export const EVENT_KINDS = [
  'hold_placed',
  'fence_taken',
  'given_up',
  'withdrawn',
  'cancel_requested',
  'cancel_acknowledged',
  'cancel_refused',
  'cancel_unsupported',
  'cancel_unanswered',
  'cancel_confirmed_stopped',
  'cancel_not_honoured',
  'status_regressed',
  'alert',
  'replayed',
  'in_flight',
  'unknown',
  'charged',
  'charged_before_sent',
  'duplicate',
  'report_after_end',
  'free',
  'next_refused',
] as const;

const OUTCOMES = ['open', 'settled', 'released', 'refused', 'stopped'] as const;
/** Why an asking was not admitted: refused with numbers, or ended because the ledger could not say. */
const HEARD_REASONS = [
  ...REFUSAL_REASONS,
  'ledger_unavailable',
  'ledger_untrusted',
  'ask_ended',
] as const;
const PROOFS = [
  'none',
  'never_sent',
  'no_connection',
  'documented_rejection',
  'fenced_absence',
  'charged_zero',
] as const;

export const alertKind = z.enum(ALERT_KINDS);
export const stopStatus = z.enum(STOP_STATUSES);
export const phase = z.enum(ATTEMPT_PHASES);
export const unknownReason = z.enum(UNKNOWN_REASONS);
export const heardReason = z.enum(HEARD_REASONS);
export const outcome = z.enum(OUTCOMES);
export const proof = z.enum(PROOFS);

/** A mapping from some of these words; any other is refused with the nearest one. */
function mapOf<Word extends string, Form extends z.ZodType>(words: readonly Word[], form: Form) {
  const shape = Object.fromEntries(words.map((word) => [word, form.optional()]));
  return z.strictObject(shape as Record<Word, z.ZodOptional<Form>>);
}

export const byEvent = <Form extends z.ZodType>(form: Form) => mapOf(EVENT_KINDS, form);
export const byOutcome = <Form extends z.ZodType>(form: Form) => mapOf(OUTCOMES, form);
export const byRefusal = <Form extends z.ZodType>(form: Form) => mapOf(REFUSAL_REASONS, form);
export const byReason = <Form extends z.ZodType>(form: Form) => mapOf(HEARD_REASONS, form);
