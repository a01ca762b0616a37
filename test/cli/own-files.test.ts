// Which file and which database a command acts on, and what it needs for that. No server is asked:
// the run file says that this process is the stack.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { identifyProcess } from '../../devstack/machine/process-identity.js';
import { writeRunFile } from '../../devstack/run-file.js';
import { type CliRun, runCli, runWorker } from '../support/run-cli.js';

const NOWHERE = 'postgres://app:hidden@127.0.0.1:1/nowhere';
const CALL = 'call --account a --route r --max-tokens 1 --prompt x';
const EMPTY = '# nothing yet\n';
const EXAMPLE = readFileSync(new URL('../../holdfast.example.yaml', import.meta.url), 'utf8');

const folder = (): string => mkdtempSync(join(tmpdir(), 'holdfast-own-'));

function write(dir: string, name: string, text: string): string {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
}

/** A state folder in which this process stands as the running stack. */
function running(configFile: string | null): string {
  const stateDir = folder();
  writeRunFile(stateDir, {
    databaseUrl: NOWHERE,
    databaseAdminUrl: NOWHERE,
    temporalAddress: '127.0.0.1:1',
    temporalNamespace: 'default',
    uiUrl: null,
    simulatorUrl: null,
    temporalBinary: null,
    configFile,
  });
  return stateDir;
}

const firstLine = (run: CliRun): string => run.stdout.split('\n')[0] ?? '';

describe('config apply', () => {
  test('takes its argument, then HOLDFAST_CONFIG, then holdfast.yaml here, then the file of the run', async () => {
    const cwd = folder();
    const [ofRun, named, ofEnvironment] = ['run', 'named', 'environment'].map((name) =>
      write(folder(), `${name}.yaml`, EMPTY),
    ) as [string, string, string];
    const state = { HOLDFAST_STATE_DIR: running(ofRun) };
    const place = 'to database 127.0.0.1:1/nowhere';
    const fromRun = await runCli(['config', 'apply'], state, cwd);
    write(cwd, 'holdfast.yaml', EMPTY);
    const own = await runCli(['config', 'apply'], state, cwd);
    const withVariable = { ...state, HOLDFAST_CONFIG: ofEnvironment };
    const fromVariable = await runCli(['config', 'apply'], withVariable, cwd);
    const fromArgument = await runCli(['config', 'apply', named], withVariable, cwd);
    expect([fromRun, own, fromVariable, fromArgument].map(firstLine)).toEqual([
      `${ofRun} ${place}`,
      `holdfast.yaml ${place}`,
      `${ofEnvironment} ${place}`,
      `${named} ${place}`,
    ]);
    expect(own.stdout).not.toContain('hidden');
  });

  test('a file that declares nothing is said to be nothing to apply, and no database is asked', async () => {
    const cwd = folder();
    write(cwd, 'holdfast.yaml', EMPTY);
    const run = await runCli(['config', 'apply'], { DATABASE_URL: NOWHERE }, cwd);
    expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('nothing to apply')]);
  });

  test('without any file it is misuse that says how to name one', async () => {
    const run = await runCli(['config', 'apply'], { DATABASE_URL: NOWHERE }, folder());
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('config apply holdfast')]);
  });
});

describe('a holdfast.yaml whose secrets are not set', () => {
  const withExample = (): string => {
    const cwd = folder();
    write(cwd, 'holdfast.yaml', EXAMPLE);
    return cwd;
  };

  test('is no matter for commands that send nothing, which say what they wait for instead', async () => {
    const environment = { DATABASE_URL: NOWHERE, TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const lines = ['status', 'ops list', 'config apply', CALL];
    const cwd = withExample();
    const runs = await Promise.all(lines.map((line) => runCli(line.split(' '), environment, cwd)));
    for (const run of runs) {
      expect(run.stderr).not.toContain('METERED_API_KEY');
      expect([run.code, run.stderr]).toEqual([3, expect.stringMatching(/LEDGER_|TEMPORAL_/)]);
      expect(run.stderr).toContain('waiting for ');
    }
  });

  test('is misuse for config check', async () => {
    const run = await runCli(['config', 'check'], {}, withExample());
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('METERED_API_KEY')]);
  });

  test('fails the configuration in doctor, which asks the ledger all the same', async () => {
    const run = await runCli(['doctor', '--json'], { DATABASE_URL: NOWHERE }, withExample());
    const findings = JSON.parse(run.stdout) as { check: string; ok: boolean; detail: string }[];
    const told = Object.fromEntries(findings.map(({ check, detail }) => [check, detail]));
    expect(told['configuration']).toContain('METERED_API_KEY is not set');
    expect(told['ledger reachable']).toContain('LEDGER_UNAVAILABLE');
  });

  test('stops a worker, which needs them', async () => {
    const run = await runWorker({ DATABASE_URL: NOWHERE }, withExample());
    expect([run.code, run.stderr]).toEqual([3, expect.stringContaining('METERED_API_KEY')]);
  });
});

test('a worker without DATABASE_URL says that it reads the environment only, and how', async () => {
  const run = await runWorker({ HOLDFAST_STATE_DIR: running(null) });
  expect(run.code).toBe(3);
  expect(run.stderr).toContain('reads the environment only');
  expect(run.stderr).toContain('export DATABASE_URL=postgres://');
});

test('db setup refuses one address of a user beside one of the run', async () => {
  const environment = { HOLDFAST_STATE_DIR: running(null), DATABASE_URL: NOWHERE };
  const run = await runCli(['db', 'setup'], environment);
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('only DATABASE_URL is set')]);
});

test('--version prints the version of package.json', async () => {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string };
  expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
});

test('stop waits until the process has ended, not only until its run file is gone', async () => {
  const stateDir = running(null);
  const file = join(stateDir, 'run.json');
  const child = spawn(
    process.execPath,
    [
      '-e',
      `process.on('SIGTERM', () => {
         require('fs').rmSync(${JSON.stringify(file)});
         setTimeout(() => process.exit(0), 2500);
       });
       setInterval(() => undefined, 1000);
       console.log('up');`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  const main = identifyProcess(child.pid ?? 0);
  const run = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...run, main }));
  const stopped = await runCli(['stop'], { HOLDFAST_STATE_DIR: stateDir });
  expect(existsSync(file)).toBe(false);
  expect(child.exitCode).toBe(0);
  expect(stopped).toMatchObject({
    code: 0,
    stdout: `stopped process ${String(child.pid)}\n`,
    stderr: `stopping process ${String(child.pid)} …\n`,
  });
  await ended;
});
