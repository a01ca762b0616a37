import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDevstack } from '../../devstack/devstack.js';
import type { Devstack, StartDevstackOptions } from '../../devstack/devstack.js';
import { startPostgres } from '../../devstack/postgres.js';
import { ignoreProgress, isAlive, makeFolder, removeFolder } from './support.js';

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
    const pids: number[] = [];
    await expect(start({ stateDir })).rejects.toMatchObject({ code: 'ALREADY_RUNNING' });
    expect(pids).toEqual([]);
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
