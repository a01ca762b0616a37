import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseConfigFile } from '../../config/config-file.js';

const ENVIRONMENT = { METERED_API_KEY: 'secret-1', LOCAL_API_KEY: 'secret-2' };
const parse = (text: string) => parseConfigFile(text, 'holdfast.yaml', ENVIRONMENT);

const GOOD = `
providers:
  metered: { kind: metered, base_url: "http://127.0.0.1:9", api_key_env: METERED_API_KEY }
routes:
  gpt: { provider: metered, max_tokens_max: 100 }
  spare: { provider: metered, max_tokens_max: 100 }
accounts: { acme: {} }
budgets: { team-a: { unit: usd, limit: "10.25", accounts: [acme] } }
prices:
  gpt: { unit: usd, per_million_input_tokens: "2.5", per_million_output_tokens: "10" }
`;

describe('holdfast.yaml', () => {
  test('the example file is right', () => {
    const text = readFileSync(new URL('../../holdfast.example.yaml', import.meta.url), 'utf8');
    expect(parse(text).routes.length).toBeGreaterThan(1);
  });

  test('amounts become exact amounts, and a price of a request alone makes tokens explicitly free', () => {
    const config = parse(GOOD + '  spare: { unit: usd, per_request: "0.000000001" }\n');
    expect(config.budgets[0]?.limitAmount).toBe(10_250_000_000n);
    expect(
      config.prices[0]?.rates.map((rate) => [rate.dimension, rate.rateAmount, rate.perCount]),
    ).toEqual([
      ['request', 0n, 1n],
      ['input_tokens', 2_500_000_000n, 1_000_000n],
      ['output_tokens', 10_000_000_000n, 1_000_000n],
    ]);
    expect(config.prices[1]?.rates.map((rate) => rate.rateAmount)).toEqual([1n, 0n, 0n]);
  });

  test('a provider is asked by lookup and a chain holds each route by itself, unless told otherwise', () => {
    const plain = parse(GOOD);
    expect(plain.providers[0]).toMatchObject({ kind: 'metered', asksBy: 'lookup' });
    expect(plain.routes[0]?.fallbackHold).toBe('each');
    const told = parse(
      GOOD.replace('kind: metered', 'kind: metered, asks_by: replay').replace(
        'max_tokens_max: 100 }',
        'max_tokens_max: 100, fallback: [spare], fallback_hold: upfront }',
      ) + '  spare: { unit: usd, per_request: "1" }\n',
    );
    expect(told.providers[0]).toMatchObject({ asksBy: 'replay' });
    expect(told.routes[0]?.fallbackHold).toBe('upfront');
  });

  test.each([
    [
      'a float',
      GOOD.replace('"10.25"', '10.25'),
      'budgets.team-a.limit: give an amount as text in quotes',
    ],
    [
      'an unknown word',
      GOOD.replace('max_tokens_max: 100 }', 'max_tokens_max: 100, colour: red }'),
      'colour',
    ],
    [
      'an unknown provider',
      GOOD.replace('provider: metered', 'provider: elsewhere'),
      '"elsewhere" is not a provider; known are metered',
    ],
    [
      'an unknown fallback',
      GOOD.replace('max_tokens_max: 100 }', 'max_tokens_max: 100, fallback: [nope] }'),
      '"nope" is not a route',
    ],
    [
      'a fallback to itself',
      GOOD.replace('max_tokens_max: 100 }', 'max_tokens_max: 100, fallback: [gpt] }'),
      'cannot fall back to itself',
    ],
    [
      'a chain of two units',
      GOOD.replace('max_tokens_max: 100 }', 'max_tokens_max: 100, fallback: [spare] }') +
        '  spare: { unit: credit, per_request: "1" }\n',
      'another unit',
    ],
    [
      'a missing secret',
      GOOD.replace('METERED_API_KEY', 'NOT_SET'),
      'the environment variable NOT_SET is not set',
    ],
    ['an unknown account', GOOD.replace('[acme]', '[stranger]'), '"stranger" is not an account'],
    [
      'a price of no route',
      GOOD + '  ghost: { unit: usd, per_request: "1" }\n',
      'prices.ghost: is not a route',
    ],
    [
      'too short timings',
      GOOD.replace('max_tokens_max: 100 }', 'max_tokens_max: 100, timings: { heartbeat_ms: 10 } }'),
      'heartbeatMs is 10; at least 5000',
    ],
    [
      'an unknown way to ask',
      GOOD.replace('kind: metered', 'kind: metered, asks_by: guess'),
      'providers.metered.asks_by',
    ],
    [
      'an unknown way to hold',
      GOOD.replace('max_tokens_max: 100 }', 'max_tokens_max: 100, fallback_hold: half }'),
      'routes.gpt.fallback_hold',
    ],
    ['too many decimals', GOOD.replace('"10.25"', '"0.1234567891"'), 'has 10, at most 9'],
    ['broken YAML', 'routes: [', 'holdfast.yaml'],
  ])('%s is refused with its place and the way out', (_name, text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  test('who asks without secrets misses none and gets none', () => {
    const without = parseConfigFile(GOOD, 'holdfast.yaml', 'without_secrets');
    expect(without.budgets).toEqual(parse(GOOD).budgets);
    expect(without.providers).toMatchObject([{ kind: 'metered', apiKey: '' }]);
  });

  test('no secret is in any message', () => {
    expect(() => parse(GOOD.replace('provider: metered', 'provider: x'))).toThrow(
      /^(?!.*secret-1)/s,
    );
  });
});
