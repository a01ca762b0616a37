import { readdirSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDevstack } from '../../devstack/devstack.js';
import type { Devstack, StartDevstackOptions } from '../../devstack/devstack.js';
import { startPostgres } from '../../devstack/postgres.js';
import { startTemporal } from '../../devstack/temporal.js';
import { ignoreProgress, isAlive, makeFolder, removeFolder } from './support.js';

const execFileAsync = promisify(execFile);

let folder: string;
let started: Devstack[];

beforeEach(() => {
  folder = makeFolder();
  started = [];
});

afterEach(async () => {
  for (const stack of started) await stack.stop();
  removeFolder(folder);
});

async function start(changes: Partial<StartDevstackOptions> = {}): Promise<Devstack> {
  const stack = await startDevstack({
    checkoutDir: folder,
    inMemoryTemporal: true,
    onProgress: ignoreProgress,
    ...changes,
  });
  started.push(stack);
  return stack;
}

test('two checkouts side by side run their own stacks and stop only those', async () => {
  const one = await start({ checkoutDir: join(folder, 'one'), inMemoryTemporal: false });
  const two = await start({ checkoutDir: join(folder, 'two'), inMemoryTemporal: false });
  await one.stop();
  const pids = [one.postgres, one.temporal, two.postgres, two.temporal].map((server) => server.pid);
  expect(pids.map(isAlive)).toEqual([false, false, true, true]);
});

test('when Postgres fails Temporal is stopped before the failure is told', async () => {
  const stateDir = join(folder, '.holdfast');
  const inUse = await startPostgres({ stateDir, onProgress: ignoreProgress });
  try {
    await expect(start({ stateDir })).rejects.toMatchObject({ code: 'ALREADY_RUNNING' });
    // Its record and its log go when it has stopped, and not before.
    expect(readdirSync(join(stateDir, 'temporal'))).toEqual([]);
    expect(isAlive(inUse.pid)).toBe(true);
  } finally {
    await inUse.stop();
  }
});

test('given addresses start nothing', async () => {
  const own = await start({ temporalAddress: 'temporal.example:7233' });
  const given = await start({
    checkoutDir: join(folder, 'other'),
    databaseAdminUrl: own.postgres.adminUrl,
    temporalAddress: 'temporal.example:7233',
  });
  expect([given.postgres.given, given.temporal.given]).toEqual([true, true]);
  await given.stop();
  expect(isAlive(own.postgres.pid)).toBe(true);
});

test('when Temporal fails Postgres is stopped before the failure is told', async () => {
  const lines: string[] = [];
  const stateDir = join(folder, '.holdfast');
  const inUse = await startTemporal({ stateDir, onProgress: ignoreProgress });
  try {
    const onProgress = (line: string): unknown => lines.push(line);
    const failing = start({ stateDir, inMemoryTemporal: false, onProgress });
    await expect(failing).rejects.toMatchObject({ code: 'ALREADY_RUNNING' });
    expect(lines.join('\n')).toContain('creating a Postgres');
    // It would be in use otherwise.
    const again = await startPostgres({ stateDir, onProgress: ignoreProgress });
    await again.stop();
    expect(isAlive(inUse.pid)).toBe(true);
  } finally {
    await inUse.stop();
  }
});

test('both servers are in process groups of their own, so that Ctrl-C leaves their end to us', async () => {
  const { postgres, temporal } = await start();
  for (const pid of [postgres.pid, temporal.pid]) {
    const { stdout } = await execFileAsync('ps', ['-o', 'pgid=', '-p', String(pid)]);
    expect(Number(stdout)).toBe(pid);
  }
});
