import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');

/** As on a machine that has no browser. */
function runUiTests(environment: NodeJS.ProcessEnv): ReturnType<typeof spawnSync> {
  return spawnSync(process.execPath, ['test/run.mjs', '--project', 'ui'], {
    cwd: root,
    env: { PATH: '', ...environment },
    encoding: 'utf8',
  });
}

test('without a browser the tests of the UI are one skipped test, and why is said', () => {
  const run = runUiTests({ CHROME_PATH: '/no/such/browser' });
  expect(run.stderr).toContain('CHROME_PATH is "/no/such/browser", which is no program');
  expect(run.stdout).toBe('tests: 0 passed, 0 failed, 1 skipped\n');
  expect(run.status).toBe(0);
});

test('without a browser in CI the tests of the UI fail, since they were asked for by name', () => {
  const run = runUiTests({ CHROME_PATH: '/no/such/browser', CI: 'true' });
  expect(run.stdout).toBe('tests: 0 passed, 1 failed, 0 skipped\n');
  expect(run.status).toBe(1);
});

test('where a Temporal server is given the tests of the UI are skipped: its lists show more', () => {
  const run = runUiTests({ CHROME_PATH: process.execPath, TEMPORAL_ADDRESS: '127.0.0.1:1' });
  expect(run.stderr).toContain('TEMPORAL_ADDRESS names one');
  expect(run.stdout).toBe('tests: 0 passed, 0 failed, 1 skipped\n');
});
