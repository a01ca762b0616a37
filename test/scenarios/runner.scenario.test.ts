import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readScenarioFile } from '../../scenario-runner/language/read-scenario.js';
import type { Scenario } from '../../scenario-runner/language/scenario.js';
import { toJson, toLines } from '../../scenario-runner/run/report.js';
import type { Theatre } from '../../scenario-runner/run/theatre.js';
import { openTestTheatre } from '../support/theatre.js';

let theatre: Theatre;

beforeAll(async () => {
  theatre = await openTestTheatre(1);
});
afterAll(async () => {
  await theatre.close();
});

function written(text: string): Scenario {
  const file = join(mkdtempSync(join(tmpdir(), 'scenario-')), 'story.yaml');
  writeFileSync(file, text);
  return readScenarioFile(file);
}

/** Unlike any file in the repository: other names, another price, another cap. */
const novel = (price: number, captured: number): string => `scenario: told-by-a-test
about: A file that nobody has seen before.
given:
  budgets: { purse: { limit: 1000, accounts: [somebody] } }
  prices: { fake-direct: { per_output_token: ${price} } }
  provider_prices: { fake-direct: ${price} }
steps:
  - { call: odd, route: fake-direct, max_tokens: 17, hears: admitted }
  - { wait_for: odd, reaches: ended }
expect:
  budgets: { purse: { captured: ${captured} } }
  provider: { received: 1, charged: ${captured} }
`;

describe('the runner', () => {
  test('plays a file that nobody has seen before, and its figures follow the price', async () => {
    const report = await theatre.play(written(novel(7, 119)), { policy: 'holdfast' });
    expect(toLines(report)[0]).toContain('pass');
    expect(report.provider).toEqual({ received: 1, charged: '119' });
    expect(report.budgets['purse']).toMatchObject({ captured: '119', held: '0', available: '881' });
    const names = report.checks.map(({ name }) => name);
    for (const name of ['conservation', 'false_free', 'false_deny', 'known_attempts']) {
      expect(names).toContain(name);
    }
  });

  test('a figure that is off fails with file, line, what was found, and one timeline of all three', async () => {
    const scenario = written(novel(7, 118));
    const report = await theatre.play(scenario, { policy: 'holdfast' });
    expect(report.verdict).toBe('fail');
    const lines = toLines(report);
    expect(lines[1]).toContain(
      `${scenario.file}:10: budget purse captured: expected 118, found 119`,
    );
    const who = new Set(report.timeline.map((line) => line.who));
    expect([...who].sort()).toEqual(['ledger', 'provider', 'workflow']);
    const times = report.timeline.map(({ at }) => at);
    expect(times).toEqual([...times].sort());
    const json = JSON.parse(toJson(report)) as { firstOff: { expected: string; actual: string } };
    expect(json.firstOff).toMatchObject({ expected: '118', actual: '119' });
  });

  test('a provider that dies in mid-scenario is reported as such, and not as a failure of the product', async () => {
    const scenario = written(
      novel(1, 17).replace(
        '  - { wait_for: odd, reaches: ended }',
        '  - { wait_for: odd, reaches: unknown }',
      ),
    );
    const report = await theatre.play(scenario, {
      policy: 'holdfast',
      onStage: (stage) => {
        process.kill(stage.providerPid, 'SIGKILL');
      },
    });
    expect(report.verdict).toBe('error');
    expect(report.reason).toContain('simulator has ended');
  });

  test('a file whose time is over is an error of its own, with the step it stood at', async () => {
    const scenario = written(
      novel(1, 17).replace(
        '  - { wait_for: odd, reaches: ended }',
        '  - { wait_for: odd, reaches: unknown }',
      ),
    );
    const report = await theatre.play(scenario, { policy: 'holdfast', limitMs: 3_000 });
    expect(report.verdict).toBe('error');
    expect(report.reason).toContain('a file has 3 s, and they are over');
    expect(report.reason).toContain('line 9');
  });

  test('a wait has an end and a sentence for it', async () => {
    const scenario = written(
      novel(1, 17).replace('reaches: ended }', 'reaches: unknown, limit: 500ms }'),
    );
    const report = await theatre.play(scenario, { policy: 'holdfast' });
    // The servers stand, so it is the product that is not where the file says; the run is judged all the same.
    expect(report.verdict).toBe('fail');
    expect(report.firstOff?.actual).toContain('"odd" reaches unknown; last it was settled');
    expect(report.checks.map(({ name }) => name)).toContain('false_free');
  });
});
