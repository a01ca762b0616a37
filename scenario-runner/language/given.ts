// What a scenario starts from. Everything has a default that the examples of `docs/scenarios.md` use.

import { z } from 'zod';
import { providerRule } from './provider-words.js';
import { count, duration, figure, name, wholeFigure } from './words.js';

const unit = z.enum(['credit', 'usd']);

const budget = z.strictObject({
  limit: z.union([figure, z.literal('none')], {
    error: 'give a whole number, a decimal or formula in quotes, or none',
  }),
  unit: unit.default('credit'),
  accounts: z
    .array(name)
    .describe('Who pays from it; the account of the same name when left out.')
    .optional(),
  scopes: z
    .array(
      z.strictObject({
        kind: z.enum(['account', 'team', 'organisation', 'tag', 'end_user', 'task']),
        value: name,
      }),
    )
    .describe('Whom it covers besides its accounts; with scopes it has no account of its own name.')
    .default([]),
});

const route = z.strictObject({
  provider: z
    .enum(['metered', 'replay', 'chat', 'jobs'])
    .describe(
      'metered can be asked by key, replay only deduplicates, chat states usage in its answer alone, jobs runs remote jobs.',
    )
    .optional(),
  model: name.optional(),
  fallback: z.array(name).optional(),
  fallback_while_unknown: z.enum(['wait', 'allow']).optional(),
  fallback_hold: z.enum(['each', 'upfront']).optional(),
  same_route_attempts: count.optional(),
  max_tokens_max: z.int().positive().optional(),
  ticks_max: z.int().positive().describe('Of a route for jobs.').optional(),
  dispatch_limit: duration.optional(),
  dispatch_before: duration.optional(),
  question_first: duration.optional(),
  question_max: duration.optional(),
});
export type GivenRoute = z.infer<typeof route>;

const price = z.strictObject({
  unit: unit.default('credit'),
  per_request: figure.optional(),
  per_input_token: figure.optional(),
  per_output_token: figure.optional(),
  per_tick: figure.describe('Of a route for jobs.').optional(),
});
export type GivenPrice = z.infer<typeof price>;

export const given = z.strictObject({
  workers: z
    .int({ error: 'give a whole number, 0 to 6' })
    .min(0, { error: 'give 0 to 6' })
    .max(6, { error: 'give 0 to 6' })
    .describe('How many worker processes run from the start.')
    .default(1),
  accounts: z
    .record(name, z.strictObject({ team: name.optional(), organisation: name.optional() }))
    .default({}),
  budgets: z.record(name, budget),
  routes: z
    .record(name, route)
    .describe(
      'Laid over the default routes fake-priced (falls back to fake-fallback), fake-direct, fake-fallback, fake-unpriced, and fake-job for jobs.',
    )
    .default({}),
  prices: z
    .record(name, z.union([price, z.literal('none')], { error: 'give a mapping, or none' }))
    .describe(
      'What the ledger expects a route to cost, laid over 1, 1 and 2 credits an output token for fake-priced, fake-direct and fake-fallback, and 1 credit a tick for fake-job; none takes a price away.',
    )
    .default({}),
  provider_prices: z
    .record(name, wholeFigure)
    .describe('What the provider itself charges a completion token, where not its default list.')
    .default({}),
  provider: z
    .array(providerRule)
    .describe('How the provider behaves from the start; the first rule that fits decides.')
    .default([]),
});
export type Given = z.infer<typeof given>;
