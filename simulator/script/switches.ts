// Switches
// --------
// What one request can be made to do. Delivery switches (`answer` of a repeat, `drop`, `body`) belong to the
// request that carries them; all the others are kept with the execution it started, for as long as the book lasts.

import { z } from 'zod';
import { creditsPattern, formatCredits, parseCredits } from '../book/credits.js';

const count = z.int().nonnegative();
const bodyForm = z.enum(['garbage', 'truncated', 'html']);

export const amountSchema = z
  .union([z.string().regex(creditsPattern), count.max(1e12)], {
    error: 'must be a decimal number of credits',
  })
  .transform((text) => formatCredits(parseCredits(String(text))));

export const lookupSchema = z.strictObject({
  /** When a lookup starts to find the execution; until then it answers `status`, or 404. */
  finds: z.enum(['at_once', 'never', 'after_ms', 'after_count', 'after_release']).optional(),
  after_ms: count.optional(),
  after_count: count.optional(),
  /** From this age on a lookup answers 404 again, as after a retention period. */
  forgets_after_ms: count.optional(),
  /** What a lookup answers while it does not find; without `finds` it answers this always. */
  status: z.int().min(400).max(599).optional(),
  retry_after_s: count.optional(),
  hang: z.boolean().optional(),
  running_until_released: z.boolean().optional(),
  body: bodyForm.optional(),
});

/** What becomes of a wish to stop a job. */
export const cancelSchema = z.strictObject({
  /** What is said: `drop` loses the answer of a cancel that took effect, `hang` has none. */
  answer: z.enum(['stopped', 'acknowledged', 'refused', 'unsupported', 'drop', 'hang']).optional(),
  /** The cancel fails with it and does nothing. */
  status: z.int().min(400).max(599).optional(),
  /** How many ticks the job still has; left out, it ends before the next one. */
  honoured_after_ticks: count.optional(),
  /** The cancel is taken and the job runs on to its bound. */
  lies: z.boolean().optional(),
});

export const switchesSchema = z.strictObject({
  answer: z.enum(['now', 'late', 'never']).optional(),
  delay_ms: count.optional(),
  until_released: z.boolean().optional(),
  charge_at: z.enum(['accept', 'answer']).optional(),
  drop: z.enum(['before_reading', 'after_accepting']).optional(),
  status: z.literal([400, 401, 403, 404, 413, 429, 503]).optional(),
  retry_after_s: count.optional(),
  fail_after_accepting: z.int().min(500).max(599).optional(),
  /** Where a failing stream breaks: before it began, as a plain answer, or behind its first chunk. */
  fail_at: z.enum(['start', 'first_chunk']).optional(),
  ends: z.enum(['completed', 'failed']).optional(),
  honours_key: z.boolean().optional(),
  /** Of a job: the questions for its status, and for its charge where nothing else is said of them. */
  lookup: lookupSchema.optional(),
  charge_lookup: lookupSchema.optional(),
  cancel: cancelSchema.optional(),
  /** What the next questions for the status of a job are answered with, whatever is true. */
  shows: z.array(z.enum(['running', 'completed', 'cancelled', 'failed'])).optional(),
  /** How many ticks a job goes on, and is charged, past its limit. */
  overruns: count.optional(),
  usage: z
    .enum(['exact', 'missing', 'null', 'zero', 'inconsistent', 'negative', 'later'])
    .optional(),
  charge_field: z.enum(['present', 'absent', 'null', 'later']).optional(),
  /** How many lookups go without what is `later`; left out, only a release shows it. */
  later_lookups: count.optional(),
  completion_tokens: count.optional(),
  charge: amountSchema.optional(),
  stated_model: z.string().min(1).optional(),
  body: bodyForm.optional(),
  /** `odd` cannot stand in a URL as it is. */
  id: z.enum(['omitted', 'duplicate', 'odd']).optional(),
});

export type LookupSwitches = z.infer<typeof lookupSchema>;
export type CancelSwitches = z.infer<typeof cancelSchema>;
export type Switches = z.infer<typeof switchesSchema>;

type Complaint = readonly [boolean, string, string];

/** Names each pair of switches that says nothing or two things at once. */
export function findContradictions(switches: Switches): readonly string[] {
  const late = switches.answer === 'late';
  const refused = switches.status !== undefined;
  const waits = switches.delay_ms !== undefined || switches.until_released === true;
  const later = switches.usage === 'later' || switches.charge_field === 'later';
  const complaints: readonly Complaint[] = [
    [late && !waits, 'answer', '"late" needs "delay_ms" or "until_released"'],
    [!late && waits, 'answer', '"delay_ms" and "until_released" need "late"'],
    [
      switches.delay_ms !== undefined && switches.until_released === true,
      'until_released',
      'say this or "delay_ms", not both',
    ],
    [
      refused && switches.fail_after_accepting !== undefined,
      'status',
      'a request is refused or accepted, not both: "fail_after_accepting"',
    ],
    [
      refused && switches.drop !== undefined,
      'status',
      'a request is answered or dropped, not both: "drop"',
    ],
    [
      switches.fail_at !== undefined && switches.fail_after_accepting === undefined,
      'fail_at',
      'needs "fail_after_accepting"',
    ],
    [
      switches.later_lookups !== undefined && !later,
      'later_lookups',
      'needs "later" in "usage" or "charge_field"',
    ],
    ...complainOfLookup('lookup', switches.lookup ?? {}),
    ...complainOfLookup('charge_lookup', switches.charge_lookup ?? {}),
    ...complainOfCancel(switches.cancel ?? {}),
  ];
  return complaints.filter(([found]) => found).map(([, path, text]) => `do.${path}: ${text}.`);
}

function complainOfLookup(name: string, lookup: LookupSwitches): readonly Complaint[] {
  return (['after_ms', 'after_count'] as const).map((word): Complaint => [
    (lookup.finds === word) !== (lookup[word] !== undefined),
    `${name}.${word}`,
    `goes together with "finds": "${word}"`,
  ]);
}

const WITHOUT_EFFECT: readonly CancelSwitches['answer'][] = ['refused', 'unsupported', 'hang'];

function complainOfCancel(cancel: CancelSwitches): readonly Complaint[] {
  const { answer, status, honoured_after_ticks: after, lies } = cancel;
  const hasEffect = status === undefined && !WITHOUT_EFFECT.includes(answer);
  return [
    [
      status !== undefined && answer !== undefined,
      'cancel.status',
      'say this or "answer", not both',
    ],
    [
      after !== undefined && lies === true,
      'cancel.lies',
      'say this or "honoured_after_ticks", not both',
    ],
    [
      after !== undefined && !hasEffect,
      'cancel.honoured_after_ticks',
      'needs a cancel that has an effect',
    ],
    [lies === true && !hasEffect, 'cancel.lies', 'needs a cancel that is taken'],
  ];
}
