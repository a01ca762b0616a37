// The judge reads what the simulator answers, and shares no code with it: both sides are tried together here.

import { expect, test } from 'vitest';
import { readTruth } from '../../scenario-runner/judge/read-truth.js';
import { startSimulator, until } from '../simulator/caller.js';

test('the truth about calls and jobs can be read as facts, with what still runs', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'call' });
  const { json } = await caller.create({ key: 'job', body: { limit: { ticks: 3 } } });
  await caller.create({ key: 'long' });
  await caller.tick(2);
  await caller.cancel(json['id']);
  await caller.charge('long');
  await caller.charge('job');
  await until(async () => (await caller.truth()).reports.length === 3);
  const { requests, charges, reports } = readTruth(await caller.truth());
  expect(requests.map(({ key, bill, isRunning }) => [key, bill, isRunning])).toEqual([
    ['call', 4n, false],
    ['job', 2n, false],
    ['long', 20n, true],
  ]);
  expect(charges.map(({ key, total, cause }) => [key, total, cause])).toEqual([
    ['call', 4n, 'accept'],
    ['job', 1n, 'tick'],
    ['long', 1n, 'tick'],
    ['job', 2n, 'tick'],
    ['long', 2n, 'tick'],
  ]);
  expect(reports.map(({ key, status, charge, final }) => [key, status, charge, final])).toEqual([
    ['call', 'completed', 4n, true],
    ['long', 'running', 2n, false],
    ['job', 'cancelled', 2n, true],
  ]);
});
