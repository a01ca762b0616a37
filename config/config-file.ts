// Configuration file
// ------------------
// `holdfast.yaml`: providers, routes, fallback chains, timings, accounts, budgets and prices. All
// that is wrong is told at once, each with its place, its value and what would be right.
// Secrets are read for whoever sends with them. Who asks for none gets none, also when they are set.

import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { HoldfastError } from '../domain/failure.js';
import { type Amount, parseAmount, type Unit } from '../domain/money.js';
import type { Rate } from '../domain/price-book.js';
import type { RouteSettings } from '../domain/route.js';
import { ConfigText, type PriceText } from './config-schema.js';
import { isForJobs, kindOf, timingsOf } from './route-settings.js';

export type ProviderSettings = { readonly name: string; readonly baseUrl: string } & (
  | { readonly kind: 'metered'; readonly apiKey: string; readonly asksBy: 'lookup' | 'replay' }
  | { readonly kind: 'metered-jobs'; readonly apiKey: string }
  | {
      readonly kind: 'openai-chat';
      readonly apiKey?: string;
      readonly direct: boolean;
      readonly limitField: 'max_tokens' | 'max_completion_tokens';
    }
);

export interface BudgetSettings {
  readonly budgetId: string;
  readonly unit: Unit;
  /** Undefined is no limit. */
  readonly limitAmount: Amount | undefined;
  readonly scopes: ConfigText['budgets'][string]['scopes'];
}

export interface PriceSettings {
  readonly route: string;
  readonly unit: Unit;
  readonly rates: readonly Rate[];
}

export interface FileConfig {
  readonly providers: readonly ProviderSettings[];
  readonly routes: readonly RouteSettings[];
  readonly accounts: readonly {
    readonly accountId: string;
    readonly team?: string;
    readonly organisation?: string;
  }[];
  readonly budgets: readonly BudgetSettings[];
  readonly prices: readonly PriceSettings[];
}

export const EMPTY_FILE: FileConfig = {
  providers: [],
  routes: [],
  accounts: [],
  budgets: [],
  prices: [],
};

/** Where secrets are, or `without_secrets`: then none is missed, and no provider can be called. */
export type SecretSource = NodeJS.ProcessEnv | 'without_secrets';

/** Throws HoldfastError INVALID_CONFIGURATION with every problem. */
export function loadConfigFile(path: string, secrets: SecretSource): FileConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new HoldfastError(
      'INVALID_CONFIGURATION',
      `cannot read ${path}; name another file, or start from a copy: cp holdfast.example.yaml holdfast.yaml`,
      {
        cause: error,
      },
    );
  }
  return parseConfigFile(text, path, secrets);
}

export function parseConfigFile(text: string, path: string, secrets: SecretSource): FileConfig {
  const document = parseDocument(text);
  if (document.errors.length > 0)
    fail(
      path,
      document.errors.map((error) => error.message),
    );
  const parsed = ConfigText.safeParse(document.toJS() ?? {});
  if (!parsed.success) {
    fail(
      path,
      parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`),
    );
  }
  const problems: string[] = [];
  const config = build(parsed.data, { secrets, problems });
  if (problems.length > 0) fail(path, problems);
  return config;
}

function fail(path: string, problems: readonly string[]): never {
  throw new HoldfastError(
    'INVALID_CONFIGURATION',
    `${path}\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
  );
}

interface Building {
  readonly secrets: SecretSource;
  readonly problems: string[];
}

function build(text: ConfigText, building: Building): FileConfig {
  checkReferences(text, building.problems);
  return {
    providers: Object.keys(text.providers).map((name) => providerOf(name, text, building)),
    routes: Object.entries(text.routes).map(([name, route]) => ({
      route: name,
      provider: route.provider,
      model: route.model ?? name,
      ...kindOf(name, text, building.problems),
      paidAttemptsPerSend: route.paid_attempts_per_send,
      timings: timingsOf(name, { text, problems: building.problems }),
      fallbacks: route.fallback,
      fallbackWhileUnknown: route.fallback_while_unknown,
      fallbackHold: route.fallback_hold,
      sameRouteAttempts: route.same_route_attempts,
    })),
    accounts: Object.entries(text.accounts).map(([accountId, account]) => ({
      accountId,
      ...(account.team !== undefined && { team: account.team }),
      ...(account.organisation !== undefined && { organisation: account.organisation }),
    })),
    budgets: Object.entries(text.budgets).map(([budgetId, budget]) => ({
      budgetId,
      unit: budget.unit,
      limitAmount:
        budget.limit === 'none'
          ? undefined
          : readAmount(building, `budgets.${budgetId}.limit`, {
              text: budget.limit,
              unit: budget.unit,
            }),
      scopes: [
        ...budget.accounts.map((value) => ({ kind: 'account' as const, value })),
        ...budget.scopes,
      ],
    })),
    prices: Object.entries(text.prices).map(([route, price]) => ({
      route,
      unit: price.unit,
      rates: ratesOf(price, (field, amountText) =>
        readAmount(building, `prices.${route}.${field}`, { text: amountText, unit: price.unit }),
      ),
    })),
  };
}

function providerOf(name: string, text: ConfigText, building: Building): ProviderSettings {
  const provider = text.providers[name];
  if (provider === undefined) throw new RangeError(`no provider ${name}`);
  const apiKey =
    provider.api_key_env === undefined
      ? undefined
      : readSecret(building, `providers.${name}.api_key_env`, provider.api_key_env);
  if (provider.kind === 'metered') {
    const { kind, base_url: baseUrl, asks_by: asksBy } = provider;
    return { name, kind, baseUrl, apiKey: apiKey ?? '', asksBy };
  }
  if (provider.kind === 'metered-jobs') {
    return { name, kind: provider.kind, baseUrl: provider.base_url, apiKey: apiKey ?? '' };
  }
  return {
    name,
    kind: provider.kind,
    baseUrl: provider.base_url,
    direct: provider.direct,
    limitField: provider.limit_field,
    ...(apiKey !== undefined && { apiKey }),
  };
}

function readSecret(building: Building, place: string, name: string): string | undefined {
  if (building.secrets === 'without_secrets') return undefined;
  const secret = building.secrets[name];
  if (secret === undefined || secret === '') {
    building.problems.push(
      `${place}: the environment variable ${name} is not set; put the secret there`,
    );
  }
  return secret;
}

function readAmount(
  building: Building,
  place: string,
  amount: { readonly text: string; readonly unit: Unit },
): Amount {
  try {
    return parseAmount(amount.text, amount.unit);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    building.problems.push(`${place}: ${error.message}`);
    return 0n as Amount;
  }
}

/** A price that names only the request is flat: its tokens are explicitly free. */
export function ratesOf(
  price: Omit<PriceText, 'unit'>,
  read: (field: string, text: string) => Amount,
): Rate[] {
  const rate = (
    dimension: string,
    fields: readonly (readonly [keyof typeof price, bigint])[],
  ): Rate[] => {
    for (const [field, perCount] of fields) {
      const text = price[field];
      if (text !== undefined) return [{ dimension, rateAmount: read(field, text), perCount }];
    }
    return [];
  };
  const request = rate('request', [['per_request', 1n]]);
  const tokens = [
    ...rate('input_tokens', [
      ['per_input_token', 1n],
      ['per_million_input_tokens', 1_000_000n],
    ]),
    ...rate('output_tokens', [
      ['per_output_token', 1n],
      ['per_million_output_tokens', 1_000_000n],
    ]),
  ];
  const ofJobs = [
    ...rate('ticks', [['per_tick', 1n]]),
    ...rate('seconds', [['per_second', 1n]]),
    ...rate('units', [['per_unit', 1n]]),
  ];
  const zero = (dimension: string): Rate => ({ dimension, rateAmount: 0n as Amount, perCount: 1n });
  if (ofJobs.length > 0) return [...(request.length > 0 ? request : [zero('request')]), ...ofJobs];
  if (request.length > 0 && tokens.length === 0) {
    return [...request, zero('input_tokens'), zero('output_tokens')];
  }
  return [...(request.length > 0 ? request : [zero('request')]), ...tokens];
}

function checkReferences(text: ConfigText, problems: string[]): void {
  const known = (names: object): string => Object.keys(names).join(', ') || 'none';
  for (const [name, route] of Object.entries(text.routes)) {
    if (!Object.hasOwn(text.providers, route.provider)) {
      problems.push(
        `routes.${name}.provider: "${route.provider}" is not a provider; known are ${known(text.providers)}`,
      );
    }
    for (const fallback of route.fallback) {
      if (fallback === name)
        problems.push(`routes.${name}.fallback: a route cannot fall back to itself`);
      else if (!Object.hasOwn(text.routes, fallback)) {
        problems.push(
          `routes.${name}.fallback: "${fallback}" is not a route; known are ${known(text.routes)}`,
        );
      } else if (isForJobs(text, fallback) !== isForJobs(text, name)) {
        problems.push(
          `routes.${name}.fallback: "${fallback}" is a route for ${isForJobs(text, fallback) ? 'jobs' : 'calls'}; name one for ${isForJobs(text, name) ? 'jobs' : 'calls'}`,
        );
      } else if (unitOf(text, fallback) !== unitOf(text, name)) {
        problems.push(`routes.${name}.fallback: "${fallback}" is priced in another unit`);
      }
    }
  }
  for (const route of Object.keys(text.prices)) {
    if (!Object.hasOwn(text.routes, route)) {
      problems.push(`prices.${route}: is not a route; known are ${known(text.routes)}`);
    }
  }
  for (const [budgetId, budget] of Object.entries(text.budgets)) {
    for (const account of budget.accounts) {
      if (!Object.hasOwn(text.accounts, account)) {
        problems.push(
          `budgets.${budgetId}.accounts: "${account}" is not an account; known are ${known(text.accounts)}`,
        );
      }
    }
  }
}

function unitOf(text: ConfigText, route: string): Unit | undefined {
  return text.prices[route]?.unit;
}
