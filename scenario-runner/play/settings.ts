// What `given` means for the real parts: the workers' configuration, the provider's prices, and the
// accounts, budgets and prices of the ledger.

import type { Unit } from '../../domain/money.js';
import { createAccount, createBudget, type Scope, setPrice } from '../../ledger/administer.js';
import type { Ledger } from '../../ledger/connection.js';
import { accountsOf, DEFAULT_ROUTES, isForJobs, payersOf } from '../language/check-references.js';
import type { GivenPrice, GivenRoute } from '../language/given.js';
import type { Scenario } from '../language/scenario.js';
import { toAmount, toCount, toPositive } from './numbers.js';

const DEFAULT_PRICES: Readonly<Record<string, GivenPrice>> = {
  'fake-priced': { unit: 'credit', per_output_token: 1 },
  'fake-direct': { unit: 'credit', per_output_token: 1 },
  'fake-fallback': { unit: 'credit', per_output_token: 2 },
  'fake-job': { unit: 'credit', per_tick: 1 },
};
const DEFAULT_FALLBACK: Readonly<Record<string, GivenRoute>> = {
  'fake-priced': { fallback: ['fake-fallback'] },
  'fake-job': { provider: 'jobs' },
};

/** Routes of one scenario, or of several that are played on one stage. */
export function routesGiven(scenarios: readonly Scenario[]): Record<string, GivenRoute> {
  const routes: Record<string, GivenRoute> = Object.fromEntries(
    DEFAULT_ROUTES.map((route) => [route, DEFAULT_FALLBACK[route] ?? {}]),
  );
  for (const { given } of scenarios) {
    for (const [name, route] of Object.entries(given.routes)) {
      routes[name] = { ...routes[name], ...route };
    }
  }
  return routes;
}

/** The text of the workers' `holdfast.yaml`; timings are short, because a play has no patience. */
export function configText(
  routes: Readonly<Record<string, GivenRoute>>,
  providerUrl: string,
): string {
  const config = {
    allow_short_timings: true,
    providers: {
      metered: { kind: 'metered', base_url: providerUrl, api_key_env: 'SIMULATOR_API_KEY' },
      replay: {
        kind: 'metered',
        base_url: providerUrl,
        api_key_env: 'SIMULATOR_API_KEY',
        asks_by: 'replay',
      },
      jobs: { kind: 'metered-jobs', base_url: providerUrl, api_key_env: 'SIMULATOR_API_KEY' },
      chat: {
        kind: 'openai-chat',
        base_url: `${providerUrl}/v1`,
        api_key_env: 'SIMULATOR_API_KEY',
      },
    },
    routes: Object.fromEntries(
      Object.entries(routes).map(([name, route]) => [name, routeConfig(name, route)]),
    ),
  };
  // JSON is YAML.
  return `${JSON.stringify(config, null, 2)}\n`;
}

function routeConfig(name: string, route: GivenRoute): Record<string, unknown> {
  return {
    provider: route.provider ?? 'metered',
    model: route.model ?? name,
    ...(route.provider === 'jobs'
      ? { bound_max: { ticks: route.ticks_max ?? 1_000 } }
      : { max_tokens_max: route.max_tokens_max ?? 100_000 }),
    fallback: route.fallback ?? [],
    fallback_while_unknown: route.fallback_while_unknown ?? 'wait',
    ...(route.fallback_hold !== undefined && { fallback_hold: route.fallback_hold }),
    same_route_attempts: route.same_route_attempts ?? 1,
    timings: {
      dispatch_limit_ms: route.dispatch_limit ?? 1_500,
      dispatch_before_ms: route.dispatch_before ?? 600_000,
      heartbeat_ms: 1_000,
      question_first_ms: route.question_first ?? 200,
      question_max_ms: route.question_max ?? 1_000,
    },
  };
}

/** What our side has a price for: the defaults, those of the file laid over them, less those taken away. */
export function pricesGiven({ given }: Scenario): [string, GivenPrice][] {
  return Object.entries({ ...DEFAULT_PRICES, ...given.prices }).filter(
    (entry): entry is [string, GivenPrice] => entry[1] !== 'none',
  );
}

/** The provider's own prices, as flags of its program. */
export function simulatorPrices(scenarios: readonly Scenario[]): string[] {
  return scenarios.flatMap((scenario) =>
    Object.entries(scenario.given.provider_prices).map(([model, rate]) => {
      const per = isForJobs(scenario, model) ? '/tick' : '';
      return `${model}=${toCount(rate, scenario.numbers)}${per}`;
    }),
  );
}

/** Account and budget names of one play: several plays on one ledger do not meet. */
export type NameOf = (name: string) => string;

export async function openBooks(ledger: Ledger, scenario: Scenario, nameOf: NameOf): Promise<void> {
  const { given, numbers } = scenario;
  for (const account of accountsOf(scenario)) {
    const { team, organisation } = given.accounts[account] ?? {};
    await createAccount(ledger, {
      accountId: nameOf(account),
      ...(team !== undefined && { team }),
      ...(organisation !== undefined && { organisation }),
    });
  }
  for (const [budget, { limit, unit, scopes }] of Object.entries(given.budgets)) {
    const paying = payersOf(scenario, budget);
    const all: Scope[] = [
      ...paying.map((value): Scope => ({ kind: 'account', value: nameOf(value) })),
      ...scopes.map(({ kind, value }): Scope => ({
        kind,
        value: kind === 'account' ? nameOf(value) : value,
      })),
    ];
    await createBudget(ledger, {
      budgetId: nameOf(budget),
      unit,
      ...(limit !== 'none' && { limitAmount: toPositive(limit, unit, numbers) }),
      scopes: all,
    });
  }
  for (const [route, price] of pricesGiven(scenario)) {
    await priceRoute(ledger, { route, price, numbers });
  }
}

export function priceRoute(
  ledger: Ledger,
  given: {
    readonly route: string;
    readonly price: GivenPrice;
    readonly numbers: Scenario['numbers'];
  },
): Promise<unknown> {
  const { route, price, numbers } = given;
  const rate = (dimension: string, text: GivenPrice['per_request']) => ({
    dimension,
    rateAmount: toPositive(text ?? 0, price.unit, numbers),
    perCount: 1n,
  });
  return setPrice(ledger, {
    route,
    unit: price.unit,
    rates: [
      rate('request', price.per_request),
      ...(price.per_tick === undefined
        ? [
            rate('input_tokens', price.per_input_token),
            rate('output_tokens', price.per_output_token),
          ]
        : [rate('ticks', price.per_tick)]),
    ],
  });
}

/** What a budget counts in. */
export function unitOf({ given }: Scenario, budget: string): Unit {
  return given.budgets[budget]?.unit ?? 'credit';
}

/** The limit of the only budget that has one, for the control arm; undefined when there is none. */
export function smallestLimit({ given, numbers }: Scenario): bigint | undefined {
  const limits = Object.values(given.budgets).flatMap(({ limit, unit }) =>
    limit === 'none' ? [] : [toAmount(limit, unit, numbers)],
  );
  return limits.length === 0 ? undefined : limits.reduce((one, two) => (one < two ? one : two));
}
