// What the provider can be told to do, in the simulator's own words. A test holds this list and the
// simulator's equal: the runner speaks to it over HTTP and imports nothing of it.

import { z } from 'zod';
import { count } from './words.js';

const bodyForm = z.enum(['garbage', 'truncated', 'html']);
const creditText = z.union([count, z.string().regex(/^\d+(\.\d+)?$/)], {
  error: 'give credits as a whole number, or as a decimal in quotes',
});

export const lookupWords = z.strictObject({
  finds: z.enum(['at_once', 'never', 'after_ms', 'after_count', 'after_release']).optional(),
  after_ms: count.optional(),
  after_count: count.optional(),
  forgets_after_ms: count.optional(),
  status: z.int().min(400).max(599).optional(),
  retry_after_s: count.optional(),
  hang: z.boolean().optional(),
  running_until_released: z.boolean().optional(),
  body: bodyForm.optional(),
});

export const cancelWords = z.strictObject({
  answer: z.enum(['stopped', 'acknowledged', 'refused', 'unsupported', 'drop', 'hang']).optional(),
  status: z.int().min(400).max(599).optional(),
  honoured_after_ticks: count.optional(),
  lies: z.boolean().optional(),
});

export const switchWords = z.strictObject({
  answer: z.enum(['now', 'late', 'never']).optional(),
  delay_ms: count.optional(),
  until_released: z.boolean().optional(),
  charge_at: z.enum(['accept', 'answer']).optional(),
  drop: z.enum(['before_reading', 'after_accepting']).optional(),
  status: z.literal([400, 401, 403, 404, 413, 429, 503]).optional(),
  retry_after_s: count.optional(),
  fail_after_accepting: z.int().min(500).max(599).optional(),
  fail_at: z.enum(['start', 'first_chunk']).optional(),
  ends: z.enum(['completed', 'failed']).optional(),
  honours_key: z.boolean().optional(),
  lookup: lookupWords.optional(),
  charge_lookup: lookupWords.optional(),
  cancel: cancelWords.optional(),
  shows: z.array(z.enum(['running', 'completed', 'cancelled', 'failed'])).optional(),
  overruns: count.optional(),
  usage: z
    .enum(['exact', 'missing', 'null', 'zero', 'inconsistent', 'negative', 'later'])
    .optional(),
  charge_field: z.enum(['present', 'absent', 'null', 'later']).optional(),
  later_lookups: count.optional(),
  completion_tokens: count.optional(),
  charge: creditText.optional(),
  stated_model: z.string().min(1).optional(),
  body: bodyForm.optional(),
  id: z.enum(['omitted', 'duplicate', 'odd']).optional(),
});

export const providerRule = z.strictObject({
  match: z
    .strictObject({
      model: z.string().optional(),
      nth: z.int().positive().optional(),
    })
    .optional(),
  times: z.int().positive().optional(),
  do: switchWords,
});
