import { expect, test } from 'vitest';
import { isPending, startSimulator, until } from './caller.js';

const limitOf = (ticks: number): object => ({ limit: { ticks } });

test('the status of a job is found by its key and by its id, and says nothing of money', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'team/a:1 %' });
  await caller.tick(3);
  const byKey = await caller.status('team/a:1 %');
  expect(byKey.status).toBe(200);
  expect(byKey.json).toEqual({
    id: json['id'],
    key: 'team/a:1 %',
    status: 'running',
    cancel: 'none',
    ticks: 3,
  });
  expect((await caller.statusOf(json['id'])).json).toEqual(byKey.json);
});

test('the charge of a job is a lower bound while it runs, and final when it has ended', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'a', body: limitOf(5) });
  await caller.tick(2);
  const charge = { amount: '2', unit: 'credit' };
  expect((await caller.charge('a')).json).toEqual({
    id: json['id'],
    key: 'a',
    final: false,
    usage: { ticks: 2 },
    charge,
  });
  await caller.tick(3);
  const ended = await caller.chargeOf(json['id']);
  expect(ended.json).toEqual({
    id: json['id'],
    key: 'a',
    final: true,
    usage: { ticks: 5 },
    charge: { ...charge, amount: '5' },
  });
});

test('what is not known is 404 in the error form for both questions, and is booked by question', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'call' });
  await caller.receipt('call');
  const answers = [
    await caller.status('call'),
    await caller.charge('never'),
    await caller.statusOf('job_0'),
    await caller.chargeOf('job_0'),
  ];
  for (const { status, json } of answers) {
    expect([status, json['error']]).toMatchObject([404, { type: 'not_found_error' }]);
  }
  const { lookups } = await caller.truth();
  expect(lookups.map(({ question, key, answer }) => [question, key, answer])).toEqual([
    ['receipt', 'call', 'completed'],
    ['status', 'call', 'not_found'],
    ['charge', 'never', 'not_found'],
    ['status', null, 'not_found'],
    ['charge', null, 'not_found'],
  ]);
});

test('each charge that left whole is a report that says whether it was final', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(2), simulate: { lookup: {} } });
  await caller.tick(1);
  await caller.charge('a');
  await caller.status('a');
  await caller.charge('a', { simulate: { charge_lookup: { body: 'truncated' } } }).catch(() => '');
  await caller.tick(1);
  await caller.charge('a');
  await until(async () => (await caller.truth()).reports.length === 2);
  expect((await caller.truth()).reports).toMatchObject([
    { via: 'lookup', key: 'a', status: 'running', usage: { ticks: 1 }, charge: '1', final: false },
    { via: 'lookup', key: 'a', status: 'completed', usage: { ticks: 2 }, charge: '2', final: true },
  ]);
  await caller.send({ key: 'call' });
  await until(async () => (await caller.truth()).reports.length === 3);
  expect((await caller.truth()).reports[2]).toMatchObject({ via: 'answer', final: true });
});

test('the charge follows the script of the status where it has none of its own', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', simulate: { lookup: { status: 500, retry_after_s: 2 } } });
  const { status, headers } = await caller.charge('a');
  expect([status, headers.get('retry-after')]).toEqual([500, '2']);
  expect((await caller.status('a')).status).toBe(500);
});

test('the charge can be lost while the status is found', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', simulate: { charge_lookup: { finds: 'never', status: 502 } } });
  expect([(await caller.status('a')).status, (await caller.charge('a')).status]).toEqual([
    200, 502,
  ]);
  await caller.create({ key: 'b', simulate: { lookup: { finds: 'never' }, charge_lookup: {} } });
  expect([(await caller.status('b')).status, (await caller.charge('b')).status]).toEqual([
    404, 200,
  ]);
});

test('each question counts its own for a script that finds after a count', async () => {
  const caller = await startSimulator();
  const lookup = { finds: 'after_count', after_count: 1, status: 500 };
  await caller.create({ key: 'a', simulate: { lookup } });
  const statuses = [
    (await caller.status('a')).status,
    (await caller.charge('a')).status,
    (await caller.status('a')).status,
    (await caller.charge('a')).status,
  ];
  expect(statuses).toEqual([500, 500, 200, 200]);
});

test('a job is forgotten when it is old, first by the question that is told so', async () => {
  const caller = await startSimulator();
  const simulate = {
    lookup: { forgets_after_ms: 90_000 },
    charge_lookup: { forgets_after_ms: 60_000 },
  };
  await caller.create({ key: 'a', simulate });
  await caller.control('clock', { advanceMs: 60_000 });
  expect([(await caller.status('a')).status, (await caller.charge('a')).status]).toEqual([
    200, 404,
  ]);
  await caller.control('clock', { advanceMs: 30_000 });
  expect((await caller.status('a')).status).toBe(404);
});

test('a question of a job can hang or be spoilt', async () => {
  const caller = await startSimulator();
  const simulate = { lookup: { hang: true }, charge_lookup: { body: 'garbage' } };
  await caller.create({ key: 'a', simulate });
  const asked = caller.status('a');
  asked.catch(() => undefined);
  expect(await isPending(asked)).toBe(true);
  const { status, text } = await caller.charge('a');
  expect(status).toBe(200);
  expect(() => JSON.parse(text) as unknown).toThrow();
  expect((await caller.truth()).lookups.map(({ answer }) => answer)).toEqual(['hang', 'running']);
});

test('a status can go backwards, and then the truth is told again', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'a', simulate: { shows: ['completed', 'running'] } });
  await caller.tick(20);
  const shown: unknown[] = [];
  for (let count = 0; count < 3; count += 1) shown.push((await caller.status('a')).json['status']);
  expect(shown).toEqual(['completed', 'running', 'completed']);
  expect((await caller.charge('a')).json['final']).toBe(true);
  const { lookups } = await caller.truth();
  expect(lookups.map(({ answer }) => answer)).toEqual([...shown, 'completed']);
  expect((await caller.cancel(json['id'])).status).toBe(409);
});

test('a question that failed uses up nothing of what is shown', async () => {
  const caller = await startSimulator();
  const lookup = { finds: 'after_count', after_count: 1 };
  await caller.create({ key: 'a', simulate: { shows: ['failed'], lookup } });
  expect((await caller.status('a')).status).toBe(404);
  expect((await caller.status('a')).json['status']).toBe('failed');
  expect((await caller.status('a')).json['status']).toBe('running');
});

test('a job is shown running until its release although it has ended', async () => {
  const caller = await startSimulator();
  const simulate = { lookup: { running_until_released: true } };
  await caller.create({ key: 'a', body: limitOf(1), simulate });
  await caller.tick(1);
  expect((await caller.status('a')).json['status']).toBe('running');
  expect((await caller.charge('a')).json).toMatchObject({ final: false, charge: { amount: '1' } });
  expect((await caller.create({ key: 'a', body: limitOf(1) })).json['status']).toBe('running');
  await caller.control('release', { key: 'a' });
  expect((await caller.status('a')).json['status']).toBe('completed');
  expect((await caller.charge('a')).json['final']).toBe(true);
});

test.each([
  [{ usage: 'missing' }, { final: true, charge: { amount: '2', unit: 'credit' } }],
  [{ usage: 'null' }, { final: true, usage: null, charge: { amount: '2', unit: 'credit' } }],
  [{ charge_field: 'absent' }, { final: true, usage: { ticks: 2 } }],
  [{ charge_field: 'null' }, { final: true, usage: { ticks: 2 }, charge: null }],
  [{ usage: 'missing', charge_field: 'absent' }, { final: false }],
  [
    { usage: 'null', charge_field: 'null' },
    { final: false, usage: null, charge: null },
  ],
  [
    { usage: 'zero', charge_field: 'absent' },
    { final: true, usage: { ticks: 0 } },
  ],
  [
    { usage: 'negative', charge_field: 'absent' },
    { final: true, usage: { ticks: -2 } },
  ],
  [
    { usage: 'inconsistent', charge_field: 'absent' },
    { final: true, usage: { ticks: 9 } },
  ],
])('a job that has ended states its charge by the switches %j as %j', async (simulate, stated) => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'a', body: limitOf(2), simulate });
  await caller.tick(2);
  expect((await caller.charge('a')).json).toEqual({ id: json['id'], key: 'a', ...stated });
});

test('a charge that comes later is not final until the third question after the end shows it', async () => {
  const caller = await startSimulator();
  const simulate = { usage: 'later', later_lookups: 2 };
  const { json } = await caller.create({ key: 'a', body: limitOf(2), simulate });
  await caller.tick(1);
  expect((await caller.charge('a')).json).toEqual({ id: json['id'], key: 'a', final: false });
  await caller.tick(1);
  const shown: unknown[] = [];
  for (let count = 0; count < 3; count += 1) {
    await caller.status('a');
    const { final, charge } = (await caller.charge('a')).json;
    shown.push([final, charge]);
  }
  const nothing = [false, undefined];
  expect(shown).toEqual([nothing, nothing, [true, { amount: '2', unit: 'credit' }]]);
});

test('a charge that comes later without a count comes with a release, and usage alone is not final', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(2), simulate: { charge_field: 'later' } });
  await caller.tick(2);
  const { id, key, ...before } = (await caller.charge('a')).json;
  expect([id, key]).toEqual([expect.any(String), 'a']);
  expect(before).toEqual({ final: false, usage: { ticks: 2 } });
  await caller.control('release', { key: 'a' });
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '2' } });
});
