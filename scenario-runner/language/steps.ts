// Steps
// -----
// What can happen, one word a step. The first known word of a step says which it is.

import { z } from 'zod';
import { expectation } from './expect.js';
import { byReason, heardReason } from './ledger-words.js';
import { cancelWords, lookupWords, providerRule } from './provider-words.js';
import { count, duration, figure, name, signedFigure, wholeFigure } from './words.js';

const HEARD = ['admitted', 'refused', 'closed', 'invalid', 'unavailable', 'unknown'] as const;
const REACHED = [
  'started',
  'received',
  'held',
  'dispatched',
  'unknown',
  'settled',
  'released',
  'ended',
  'answered',
  'cancel_requested',
  'cancel_acknowledged',
  'cancel_refused',
  'cancel_unsupported',
] as const;
const WAYS = ['ledger', 'temporal', 'provider'] as const;

const via = z
  .enum(['client', 'temporal'])
  .describe("Through the typed client, or with nothing but Temporal's own.")
  .default('client');

/** What every asking can say, be it for a call or for a job. */
const asking = {
  account: name.describe('The only account when left out.').optional(),
  operation: z
    .string()
    .describe("The caller's own id; the name of the call or job when left out.")
    .optional(),
  tags: z.array(name).optional(),
  end_user: name.optional(),
  task: name.optional(),
  via,
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
} as const;

/** A call through the typed client, or with nothing but Temporal's own. */
const call = z.strictObject({
  call: name,
  route: name.default('fake-priced'),
  max_tokens: wholeFigure.default(4),
  stream: z.literal(true).optional(),
  ...asking,
});
export type CallStep = z.infer<typeof call>;

/** A remote job; its bound is held, and sent as the provider's own limit. */
const job = z.strictObject({
  job: name,
  route: name.default('fake-job'),
  ticks: wholeFigure.describe('The bound: how many ticks may be bought at most.').default(20),
  ...asking,
});
export type JobStep = z.infer<typeof job>;

export function nameOfAsking(step: CallStep | JobStep): string {
  return 'call' in step ? step.call : step.job;
}

/** An agent task: a plan of calls and jobs. Its operations are told of as `task.step`. */
const task = z.strictObject({
  task: name,
  account: name.describe('The only account when left out.').optional(),
  budget: wholeFigure.describe('A limit for the task alone, in credits.').optional(),
  via,
  hears: z
    .enum(['started', 'exists', 'invalid'])
    .describe('What whoever starts it hears.')
    .default('started'),
  steps: z
    .array(
      z.strictObject({
        id: name,
        after: z.array(name).optional(),
        call: z
          .strictObject({
            route: name.default('fake-priced'),
            max_tokens: wholeFigure.default(4),
          })
          .optional(),
        job: z
          .strictObject({ route: name.default('fake-job'), ticks: wholeFigure.default(20) })
          .optional(),
      }),
    )
    .min(1, { error: 'give at least one step' }),
});
export type TaskStepOf = z.infer<typeof task>;

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
  job,
  task,
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
  lookup: z.strictObject({
    lookup: name,
    answers: lookupWords,
    charge_answers: lookupWords.describe('Of a job: the questions for its charge.').optional(),
  }),
  cancelling: z.strictObject({
    cancelling: name,
    answers: cancelWords.describe('How the provider takes a wish to stop this job from now on.'),
  }),
  ticks: z.strictObject({
    ticks: count.describe('So many ticks pass at the provider; running jobs are charged for each.'),
  }),
  outage: z.strictObject({
    outage: z
      .enum(['begins', 'ends'])
      .describe('Of the whole job service: status, charge and cancel answer 503.'),
  }),
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
  cancel: z.strictObject({
    cancel: name,
    via: z
      .enum(['temporal', 'signal', 'update', 'operator'])
      .describe(
        "Temporal's own cancel, the signal, the update, or the ledger as `ops cancel` does.",
      )
      .default('temporal'),
    times: count.default(1),
  }),
  signal: z.strictObject({
    signal: name.describe('A call, a job or a task.'),
    named: z.string().min(1, { error: 'give the name of the signal' }),
    payload: z
      .unknown()
      .describe('Whatever arrives; without it the signal has no argument at all.')
      .optional(),
    times: count.default(1),
  }),
  reset: z.strictObject({
    reset: name,
    to: z.enum(['first_task', 'last_task']).default('first_task'),
  }),
  delete: ofCall('delete'),
  lose: z.strictObject({
    lose: z.literal('temporal').describe('Its whole database is thrown away.'),
  }),
  sweep: z.strictObject({
    sweep: z.literal('supervisors'),
    restarted: count.describe('How many are started again by it.').optional(),
  }),
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
