// Steps
// -----
// What can happen, one word a step. The first known word of a step says which it is.

import { z } from 'zod';
import { expectation } from './expect.js';
import { byReason, heardReason } from './ledger-words.js';
import { lookupWords, providerRule } from './provider-words.js';
import { count, duration, figure, name, signedFigure, wholeFigure } from './words.js';

const HEARD = ['admitted', 'refused', 'closed', 'invalid', 'unavailable', 'unknown'] as const;
const REACHED = [
  'received',
  'held',
  'dispatched',
  'unknown',
  'settled',
  'released',
  'ended',
  'answered',
] as const;
const WAYS = ['ledger', 'temporal', 'provider'] as const;

/** A call through the typed client, or with nothing but Temporal's own. */
const call = z.strictObject({
  call: name,
  account: name.describe('The only account when left out.').optional(),
  route: name.default('fake-priced'),
  max_tokens: wholeFigure.default(4),
  operation: z
    .string()
    .describe("The caller's own id; the name of the call when left out.")
    .optional(),
  stream: z.literal(true).optional(),
  tags: z.array(name).optional(),
  end_user: name.optional(),
  task: name.optional(),
  via: z
    .enum(['client', 'temporal'])
    .describe("Through the typed client, or with nothing but Temporal's own.")
    .default('client'),
  caller_waits: duration
    .describe(
      'How long its caller waits for an answer; without it the next step begins at the verdict.',
    )
    .optional(),
  detached: z.literal(true).describe('Goes on without waiting for the verdict.').optional(),
  hears: z.enum(HEARD).optional(),
  reason: heardReason.optional(),
  needed: figure.optional(),
  available: signedFigure.optional(),
  held: figure.optional(),
  unknown: figure.optional(),
  within: duration
    .describe('The verdict must come by then; a slow machine gets three times that.')
    .optional(),
});
export type CallStep = z.infer<typeof call>;

const together = z.strictObject({
  together: z
    .array(call, { error: 'give a list of 2 to 16 calls' })
    .min(2, { error: 'give 2 to 16 calls' })
    .max(16, { error: 'give 2 to 16 calls' }),
  processes: z.literal(true).describe('Each caller in a process of its own.').optional(),
  admitted: count.optional(),
  refused: byReason(count).optional(),
  refusal: z
    .strictObject({
      needed: figure.optional(),
      available: signedFigure.optional(),
      held: figure.optional(),
      unknown: figure.optional(),
    })
    .describe('The numbers of each refusal among them.')
    .optional(),
});

const ofCall = <Word extends string>(word: Word) =>
  z.strictObject({ [word]: name } as Record<Word, typeof name>);

export const STEPS = {
  call,
  together,
  wait_for: z.strictObject({
    wait_for: name,
    reaches: z.enum(REACHED),
    limit: duration.default(20_000),
  }),
  answer: z.strictObject({
    answer: name,
    caller_waits: duration,
    is: z.enum([
      'answered',
      'settled_without_answer',
      'rejected',
      'stopped',
      'refused',
      'unavailable',
      'unknown',
    ]),
  }),
  provider: z.strictObject({ provider: providerRule }),
  provider_forgets: z.strictObject({ provider_forgets: z.literal('rules') }),
  release: z.strictObject({
    release: z.union([z.literal('all'), name], { error: 'give a call, or all' }),
  }),
  finish: z.strictObject({
    finish: name,
    completion_tokens: count.optional(),
    charge: wholeFigure.optional(),
  }),
  correct: z.strictObject({ correct: name, charge: wholeFigure }),
  lookup: z.strictObject({ lookup: name, answers: lookupWords }),
  forward: z.strictObject({
    forward: duration,
    clock: z.enum(['both', 'ledger', 'provider']).default('both'),
  }),
  look_up: ofCall('look_up'),
  kill: z.strictObject({
    kill: z.literal('workers'),
    signal: z.enum(['SIGKILL', 'SIGTERM']).default('SIGKILL'),
  }),
  start: z.strictObject({ start: z.enum(['worker', 'postgres', 'temporal']) }),
  stop: z.strictObject({ stop: z.enum(['postgres', 'temporal']) }),
  cut: z.strictObject({ cut: z.enum(WAYS) }),
  hold: z.strictObject({
    hold: z.enum(WAYS),
    direction: z.enum(['to_server', 'to_client', 'both']).default('both'),
  }),
  pass: z.strictObject({ pass: z.enum(WAYS) }),
  terminate: ofCall('terminate'),
  cancel: ofCall('cancel'),
  restart: ofCall('restart'),
  report: z.strictObject({
    report: name,
    attempt: z.int().positive({ error: 'give 1 or more' }).default(1),
    amount: figure,
    basis: z.enum(['final', 'lower_bound', 'upper_bound']).default('final'),
    id: z.string().min(1, { error: 'give text' }),
    times: z
      .int({ error: 'give 1 to 20' })
      .min(1, { error: 'give 1 to 20' })
      .max(20, { error: 'give 1 to 20' })
      .default(1),
  }),
  freeze: ofCall('freeze'),
  unfreeze: ofCall('unfreeze'),
  price: z.strictObject({ price: name, per_output_token: wholeFigure }),
  expect: z.strictObject({ expect: expectation }),
} as const;

export type StepWord = keyof typeof STEPS;
export type StepOf<Word extends StepWord> = z.infer<(typeof STEPS)[Word]>;
export type Step = {
  [Word in StepWord]: { readonly word: Word; readonly line: number } & {
    readonly step: StepOf<Word>;
  };
}[StepWord];
