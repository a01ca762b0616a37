// The schema that editors read stands in the repository, so it can fall behind the language:
// `UPDATE_SCENARIO_SCHEMA=1 npm run test:unit -- test/scenarios/schema.test.ts` writes it anew.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { format } from 'prettier';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { scenarioJsonSchema } from '../../scenario-runner/language/scenario.js';

const SCENARIOS = new URL('../../scenarios/', import.meta.url);
const SCHEMA = new URL('scenario.schema.json', SCENARIOS);

const stories = readdirSync(SCENARIOS, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.yaml'))
  .sort();
const read = (path: string): string => readFileSync(new URL(path, SCENARIOS), 'utf8');

type Validate = (value: unknown) => boolean;

/** ESLint brings a validator along, so nothing has to be installed for this test. */
function validator(): Validate {
  const fromEslint = createRequire(createRequire(import.meta.url).resolve('eslint'));
  const Ajv = fromEslint('ajv') as new (options: object) => { compile(schema: unknown): Validate };
  return new Ajv({ extendRefs: true }).compile(JSON.parse(readFileSync(SCHEMA, 'utf8')));
}

describe('scenarios/scenario.schema.json', () => {
  test('is what the language says', async () => {
    const now = await format(JSON.stringify(scenarioJsonSchema()), {
      parser: 'json',
      printWidth: 100,
    });
    if (process.env['UPDATE_SCENARIO_SCHEMA'] === '1') writeFileSync(fileURLToPath(SCHEMA), now);
    expect(readFileSync(SCHEMA, 'utf8')).toBe(now);
  });

  test.each(stories)('accepts %s', (path) => {
    const validate = validator();
    validate(parse(read(path)));
    expect((validate as { errors?: unknown }).errors ?? []).toEqual([]);
  });

  test.each(stories)('%s tells editors where it is', (path) => {
    const up = '../'.repeat(path.split('/').length - 1);
    expect(read(path).split('\n')[0]).toBe(
      `# yaml-language-server: $schema=${up}scenario.schema.json`,
    );
  });

  const whole = {
    scenario: 'x',
    about: 'y',
    given: { budgets: { b: { limit: 10 } } },
    steps: [{ call: 'a' }],
    expect: { admitted: 1 },
  };

  test.each([
    ['at the top', { ...whole, expekt: {} }],
    ['in given', { ...whole, given: { ...whole.given, budgts: {} } }],
    ['in a budget', { ...whole, given: { budgets: { b: { limit: 10, limt: 1 } } } }],
    ['as a step', { ...whole, steps: [{ cal: 'a' }] }],
    ['in a step', { ...whole, steps: [{ call: 'a', rout: 'b' }] }],
    ['in expect', { ...whole, expect: { admited: 1 } }],
    ['in do', { ...whole, steps: [{ provider: { do: { answr: 'now' } } }] }],
    ['as a value', { ...whole, steps: [{ provider: { do: { answer: 'nw' } } }] }],
    ['as a float', { ...whole, given: { budgets: { b: { limit: 1.5 } } } }],
  ])('refuses an unknown word %s', (_where, value) => {
    const validate = validator();
    expect(validate(whole)).toBe(true);
    expect(validate(value)).toBe(false);
  });
});
