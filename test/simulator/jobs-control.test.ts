import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSimulator, startStoppable, until } from './caller.js';

let home = '';

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'simulator-jobs-'));
});

afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

const limitOf = (ticks: number): object => ({ limit: { ticks } });

test('jobs go on after a restart where they stood, with their ticks, cancels and scripts', async () => {
  const truthFile = join(home, 'restart.jsonl');
  const { caller: before, stop } = await startStoppable({ truthFile });
  const cancel = { honoured_after_ticks: 2 };
  const { json } = await before.create({ key: 'a', simulate: { cancel, shows: ['failed'] } });
  await before.create({ key: 'b', body: limitOf(4), simulate: { usage: 'later' } });
  await before.tick(3);
  await before.cancel(json['id']);
  await before.status('a');
  await before.tick(1);
  await before.control('cancel', { key: 'a', cancel: { answer: 'refused' } });
  await before.control('lookup', { key: 'b', charge_lookup: { status: 500 } });
  await before.control('outage', { jobs: true });
  const told = await before.truth();
  await stop();

  const { caller } = await startStoppable({ truthFile, prices: ['fake-job=9/tick'] });
  expect((await caller.status('a')).status).toBe(503);
  await caller.control('outage', { jobs: false });
  const after = await caller.truth();
  expect(after).toMatchObject({ requests: told.requests, cancels: told.cancels });
  expect([after.charges, after.totals]).toEqual([told.charges, told.totals]);
  expect((await caller.cancel(json['id'])).status).toBe(409);
  expect((await caller.charge('b')).status).toBe(500);
  expect((await caller.create({ key: 'a' })).headers.get('idempotency-replayed')).toBe('true');
  expect((await caller.status('a')).json).toMatchObject({ status: 'running', cancel: 'requested' });
  expect((await caller.tick(1)).json).toEqual({ tick: 5, running: [] });
  expect((await caller.status('a')).json).toMatchObject({ status: 'cancelled', ticks: 5 });
  expect((await caller.charge('a')).json).toMatchObject({ charge: { amount: '5' } });
});

test('ticks pass by themselves at the pace that was asked for, until the provider is closed', async () => {
  const { caller, stop } = await startStoppable({ tickMs: 5 });
  await caller.create({ key: 'a', body: limitOf(3) });
  await until(async () => (await caller.status('a')).json['status'] === 'completed');
  expect((await caller.truth()).totals.charged).toBe('3');
  expect((await caller.tick(1)).json['tick']).toBe(4);
  await stop();
});

test('a provider that was closed lets no tick pass, and goes on when it is started again', async () => {
  const truthFile = join(home, 'pace.jsonl');
  const { caller, stop } = await startStoppable({ truthFile, tickMs: 5 });
  await caller.create({ key: 'a', body: limitOf(1_000_000) });
  await until(async () => (await caller.truth()).totals.charged !== '0');
  await stop();
  const booked = readFileSync(truthFile, 'utf8');
  await new Promise((resolve) => setTimeout(resolve, 40));
  expect(readFileSync(truthFile, 'utf8')).toBe(booked);
  const tickCount = booked.match(/"event":"ticks"/g)?.length ?? 0;
  const { caller: again } = await startStoppable({ truthFile, tickMs: 5 });
  await until(async () => Number((await again.truth()).totals.charged) > tickCount);
});

test.each([{}, { count: 0 }, { count: -1 }, { count: 1.5 }, { ticks: 1 }])(
  'the order %j lets no tick pass',
  async (order) => {
    const caller = await startSimulator();
    expect((await caller.control('ticks', order)).status).toBe(400);
    expect((await caller.tick(1)).json['tick']).toBe(1);
  },
);

test('a job that is finished has completed, and costs what it is told or its ticks', async () => {
  const caller = await startSimulator();
  for (const key of ['a', 'b']) await caller.create({ key });
  await caller.tick(2);
  expect((await caller.control('finish', { key: 'a' })).json).toMatchObject({
    status: 'completed',
    final: true,
    charge: { amount: '2' },
  });
  await caller.control('finish', { key: 'b', charge: '7.5' });
  await caller.tick(1);
  const { charges, requests } = await caller.truth();
  expect(charges.at(-1)).toMatchObject({ key: 'b', total: '7.5', cause: 'finish' });
  expect(requests.map(({ state, bill }) => [state, bill])).toEqual([
    ['completed', '2'],
    ['completed', '7.5'],
  ]);
  expect((await caller.control('finish', { key: 'a' })).status).toBe(409);
  const usage = { completion_tokens: 1 };
  await caller.create({ key: 'c' });
  expect((await caller.control('finish', { key: 'c', usage })).status).toBe(400);
});

test('a correction changes what an ended job states, and waits until it has ended', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(2) });
  await caller.tick(1);
  expect((await caller.control('correct', { key: 'a', charge: '9' })).status).toBe(409);
  await caller.tick(1);
  await caller.control('correct', { key: 'a', charge: '1' });
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '1' } });
  const { charges, requests } = await caller.truth();
  expect(charges.at(-1)).toMatchObject({ total: '1', delta: '-1', cause: 'correction' });
  expect(requests[0]).toMatchObject({ bill: '1', charged: '1' });
});

test('an order about a key means what it started last, a call or a job', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(1) });
  await caller.send({ key: 'a' });
  await caller.tick(1);
  await caller.control('correct', { key: 'a', charge: '9' });
  expect((await caller.receipt('a')).json['charge']).toMatchObject({ amount: '9' });
  expect((await caller.charge('a')).json['charge']).toMatchObject({ amount: '1' });
});

test('the two questions of a job are told apart when their script is changed', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a' });
  const order = { key: 'a', charge_lookup: { status: 500 } };
  expect((await caller.control('lookup', order)).status).toBe(200);
  expect([(await caller.status('a')).status, (await caller.charge('a')).status]).toEqual([
    200, 500,
  ]);
  await caller.control('lookup', { key: 'a', lookup: { finds: 'never' } });
  expect([(await caller.status('a')).status, (await caller.charge('a')).status]).toEqual([
    404, 500,
  ]);
  expect((await caller.control('lookup', { key: 'a' })).status).toBe(400);
});

test('a release does not end a running job, and releases it once', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({
    key: 'a',
    simulate: { lookup: { finds: 'after_release' } },
  });
  await caller.create({ key: 'b' });
  expect((await caller.status('a')).status).toBe(404);
  expect((await caller.control('release', { all: true })).json).toEqual({ released: [json['id']] });
  expect((await caller.status('a')).json['status']).toBe('running');
  expect((await caller.control('release', { all: true })).json).toEqual({ released: [] });
});

test('an outage answers 503 on every route of jobs, books each, and lets the jobs run', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'a' });
  await caller.behave({ times: 1, do: { status: 429 } });
  await caller.control('outage', { jobs: true });
  const refused = [
    await caller.status('a'),
    await caller.charge('a'),
    await caller.statusOf('job_0'),
    await caller.cancel(json['id']),
    await caller.create({ key: 'b' }),
  ];
  for (const { status, json: body } of refused) {
    expect([status, body['error']]).toMatchObject([503, { type: 'overloaded_error' }]);
  }
  expect((await caller.send({ key: 'call', simulate: {} })).status).toBe(200);
  await caller.tick(1);
  await caller.control('outage', { jobs: false });
  expect((await caller.status('a')).json).toMatchObject({
    status: 'running',
    cancel: 'none',
    ticks: 1,
  });
  const { lookups, cancels, requests } = await caller.truth();
  expect(lookups.slice(0, 3).map(({ question, key, answer }) => [question, key, answer])).toEqual([
    ['status', 'a', 'status_503'],
    ['charge', 'a', 'status_503'],
    ['status', null, 'status_503'],
  ]);
  expect(cancels).toMatchObject([{ key: 'a', answer: 'status_503', honouredAtTick: null }]);
  expect(requests[1]).toMatchObject({ outcome: 'refused', reason: 'outage', bill: null });
  expect((await caller.create({ key: 'b' })).status).toBe(429);
});
