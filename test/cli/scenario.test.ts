import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type CliRun, runCli } from '../support/run-cli.js';

const KILL_9 = fileURLToPath(new URL('../../scenarios/story/2-kill-9.yaml', import.meta.url));
const KILL_9_ABOUT =
  'The worker dies after the request was sent and before its answer is recorded; another one finds out.';

const dir = mkdtempSync(join(tmpdir(), 'holdfast-scenario-test-'));
const BAD = join(dir, 'bad.yaml');
writeFileSync(
  BAD,
  'scenario: x\nabout: y\ngiven: { budgets: { b: { limit: 10 } } }\nsteps: [{ cal: a }]\nexpect: { admitted: 1 }\n',
);
const COMPLAINT = `${BAD}:4: steps.0.cal: unknown word; the nearest known word is "call"`;

const scenario = (...args: string[]): Promise<CliRun> => runCli(['scenario', ...args]);

describe('scenario check', () => {
  test('a file that can be played is told in one line', async () => {
    expect(await scenario('check', KILL_9)).toEqual({
      code: 0,
      stdout: `kill-9: ${KILL_9_ABOUT}\n`,
      stderr: '',
    });
  });

  test('a file that cannot be played is misuse, and the others are told all the same', async () => {
    expect(await scenario('check', BAD, KILL_9)).toEqual({
      code: 2,
      stdout: `kill-9: ${KILL_9_ABOUT}\n`,
      stderr: `holdfast: 1 unusable\n${COMPLAINT}\n`,
    });
  });

  test('--json has both on stdout', async () => {
    const { code, stdout } = await scenario('check', '--json', BAD, KILL_9);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toEqual([
      { file: KILL_9, scenario: 'kill-9', about: KILL_9_ABOUT, ok: true },
      {
        file: BAD,
        ok: false,
        problems: [
          { line: 4, message: 'steps.0.cal: unknown word; the nearest known word is "call"' },
        ],
      },
    ]);
  });

  test('a file that is not there', async () => {
    const path = join(dir, 'none.yaml');
    const { code, stderr } = await scenario('check', path);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `holdfast: 1 unusable\n${path}:1: there is no such file\n`,
    });
  });
});

describe('scenario run is refused before a server is started', () => {
  test.each([
    ['an unusable file', [BAD], `holdfast: 1 unusable\n${COMPLAINT}\n`],
    ['an unusable file beside a good one', [KILL_9, BAD], `holdfast: 1 unusable\n${COMPLAINT}\n`],
    ['no jobs', [KILL_9, '--jobs', '0'], 'holdfast: --jobs is "0"; give 1 to 8\n'],
    ['many jobs', [KILL_9, '--jobs', '9'], 'holdfast: --jobs is "9"; give 1 to 8\n'],
    ['half a job', [KILL_9, '--jobs', '1.5'], 'holdfast: --jobs is "1.5"; give 1 to 8\n'],
    [
      'a number without a value',
      [KILL_9, '--set', 'bad'],
      'holdfast: --set is "bad"; give name=number\n',
    ],
    [
      'a float',
      [KILL_9, '--set', 'price=1.5'],
      'holdfast: --set is "price=1.5"; give name=number\n',
    ],
    [
      'a number that no file has',
      [KILL_9, '--set', 'cost=3'],
      'holdfast: --set names "cost", which no file has; known are price, limit\n',
    ],
    [
      'another policy',
      [KILL_9, '--policy', 'other'],
      "error: option '--policy <policy>' argument 'other' is invalid. Allowed choices are holdfast, naive.\n(add --help for help)\n",
    ],
    ['no file', [], "error: missing required argument 'files'\n(add --help for help)\n"],
  ])('%s', async (_what, args, stderr) => {
    const temporary = mkdtempSync(join(dir, 'tmp-'));
    const run = await runCli(['scenario', 'run', ...args], { TMPDIR: temporary });
    expect(run).toEqual({ code: 2, stdout: '', stderr });
    // Servers of a run keep their data there.
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('a number that makes a figure negative, with the place of each', async () => {
    const { code, stderr } = await scenario('run', KILL_9, '--set', 'limit=-1');
    expect(code).toBe(2);
    expect(stderr).toContain(
      'budgets.kill.limit: the formula "= limit" is -1; give one that is 0 or more',
    );
  });
});

test.each(['run', 'check'])('scenario %s --help has an example', async (command) => {
  const { code, stdout } = await scenario(command, '--help');
  expect(code).toBe(0);
  expect(stdout).toContain(`Example:\n  npx holdfast scenario ${command} `);
});
