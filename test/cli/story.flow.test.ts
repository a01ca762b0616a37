import { describe, expect, inject, test } from 'vitest';
import { runCli } from '../support/run-cli.js';

interface Line {
  readonly figure: string;
  readonly actual: string;
  readonly ok: boolean;
}

describe('npm start', () => {
  test('at price 3 and limit 250 the story has other figures, and reaches them on servers that were given', async () => {
    const run = await runCli(['start', '--exit', '--json', '--price', '3', '--limit', '250'], {
      DATABASE_ADMIN_URL: inject('databaseAdminUrl'),
      TEMPORAL_ADDRESS: inject('temporalAddress'),
    });
    const lines = run.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    expect(lines.filter((line) => !line.ok)).toEqual([]);
    const figures = Object.fromEntries(lines.map((line) => [line.figure, line.actual]));
    expect(figures).toMatchObject({
      'naive admitted': '3',
      'naive charged': '360',
      'provider charged': '240',
      admitted: '2',
      'refused needed': '120',
      'refused available': '10',
      'refused held': '240',
      'refused unknown': '120',
      'budget forty captured': '240',
      'call a events duplicate': '2',
      'call doomed phases': 'sending',
      'call doomed received': '1',
      'call dark reason': 'ledger_unavailable',
      false_free: '0, with an excess of 0',
    });
    expect(run.stderr.trim().split('\n').at(-1)).toBe(
      `story: ${lines.length} of ${lines.length} figures reached, ${/, ([\d.]+) s$/.exec(run.stderr.trim())?.[1] ?? '?'} s`,
    );
    expect(run.code).toBe(0);
  }, 120_000);
});
