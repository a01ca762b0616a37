// The form of `holdfast.yaml`. Unknown words are refused; amounts are texts, because a YAML float is
// not exact.

import { z } from 'zod';
import { ID_RULE, problemOfId } from '../domain/identity.js';
import { UNITS, type Unit } from '../domain/money.js';

const Id = z
  .string()
  .refine((text) => problemOfId(text) === undefined, { error: `give ${ID_RULE}` });
const UnitName = z.enum(UNITS as [Unit, ...Unit[]]);
const AmountText = z.string({
  error: 'give an amount as text in quotes, such as "100" or "0.25": a YAML number is not exact',
});
const Ms = z.number().int().positive();

const Provider = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('metered'),
    base_url: z.url(),
    api_key_env: z.string().min(1),
    /** Replay: where no receipt can be looked up, and a repeat under the same key answers the first. */
    asks_by: z.enum(['lookup', 'replay']).default('lookup'),
  }),
  z.strictObject({
    kind: z.literal('metered-jobs'),
    base_url: z.url(),
    api_key_env: z.string().min(1),
  }),
  z.strictObject({
    kind: z.literal('openai-chat'),
    base_url: z.url(),
    api_key_env: z.string().min(1).optional(),
    /** True only for the vendor itself: then its documented refusals prove that nothing was charged. */
    direct: z.boolean().default(false),
    limit_field: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
  }),
]);

const Timings = z.strictObject({
  dispatch_limit_ms: Ms.optional(),
  heartbeat_ms: Ms.optional(),
  dispatch_before_ms: Ms.optional(),
  question_first_ms: Ms.optional(),
  question_max_ms: Ms.optional(),
});

const Route = z.strictObject({
  provider: z.string(),
  model: z.string().min(1).optional(),
  /** For calls: the largest `maxTokens` that may be asked for. */
  max_tokens_max: z.number().int().min(1).optional(),
  /** For jobs: each dimension of their bound, with the most that may be asked for. */
  bound_max: z.record(z.string().regex(/^[a-z_]{1,64}$/), z.number().int().min(1)).optional(),
  fallback: z.array(z.string()).default([]),
  fallback_while_unknown: z.enum(['wait', 'allow']).default('wait'),
  fallback_hold: z.enum(['each', 'upfront']).default('each'),
  same_route_attempts: z.number().int().min(0).max(10).default(1),
  paid_attempts_per_send: z.number().int().min(1).max(100).default(1),
  timings: Timings.default({}),
});

const Scope = z.strictObject({
  kind: z.enum(['account', 'team', 'organisation', 'tag', 'end_user', 'task']),
  value: Id,
});

const Budget = z.strictObject({
  unit: UnitName,
  limit: AmountText,
  accounts: z.array(Id).default([]),
  scopes: z.array(Scope).default([]),
});

const Account = z.strictObject({ team: Id.optional(), organisation: Id.optional() });

const Price = z.strictObject({
  unit: UnitName,
  per_request: AmountText.optional(),
  per_input_token: AmountText.optional(),
  per_output_token: AmountText.optional(),
  per_million_input_tokens: AmountText.optional(),
  per_million_output_tokens: AmountText.optional(),
  /** Of jobs. */
  per_tick: AmountText.optional(),
  per_second: AmountText.optional(),
  per_unit: AmountText.optional(),
});
export type PriceText = z.infer<typeof Price>;

const named = <T extends z.ZodType>(schema: T) => z.record(Id, schema).default({});

export const ConfigText = z.strictObject({
  /** Lets stories and tests use timings below the floors of production. */
  allow_short_timings: z.boolean().default(false),
  providers: named(Provider),
  routes: named(Route),
  accounts: named(Account),
  budgets: named(Budget),
  prices: named(Price),
});
export type ConfigText = z.infer<typeof ConfigText>;
