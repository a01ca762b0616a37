import { expect, test } from 'vitest';
import { isPending, startSimulator } from './caller.js';

test('a receipt is found by its key and by its id', async () => {
  const caller = await startSimulator();
  const { json } = await caller.send({ key: 'team/a:1 %' });
  const byKey = await caller.receipt('team/a:1 %');
  const byId = await caller.ask(`/v1/receipts/${String(json['id'])}`);
  expect(byKey.status).toBe(200);
  expect(byId.json).toEqual(byKey.json);
  expect(byKey.json).toEqual({
    id: json['id'],
    key: 'team/a:1 %',
    status: 'completed',
    model: 'fake-priced',
    usage: json['usage'],
    charge: { amount: '4', unit: 'credit' },
  });
});

test('an unknown key is 404 in the error form and booked as a lookup', async () => {
  const caller = await startSimulator();
  const { status, json } = await caller.receipt('never-sent');
  expect(status).toBe(404);
  expect(json['error']).toMatchObject({ type: 'not_found_error' });
  expect((await caller.truth()).lookups).toMatchObject([
    { key: 'never-sent', answer: 'not_found' },
  ]);
});

test('a listing lag is 404 until the simulated clock has passed it', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { lookup: { finds: 'after_ms', after_ms: 60_000 } } });
  expect((await caller.receipt('a')).status).toBe(404);
  await caller.control('clock', { advanceMs: 60_000 });
  expect((await caller.receipt('a')).status).toBe(200);
});

test('a receipt is found after two lookups that failed with 500', async () => {
  const caller = await startSimulator();
  const lookup = { finds: 'after_count', after_count: 2, status: 500, retry_after_s: 1 };
  await caller.send({ key: 'a', simulate: { lookup } });
  const statuses: number[] = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await caller.receipt('a')).status);
  expect(statuses).toEqual([500, 500, 200]);
  const { lookups } = await caller.truth();
  expect(lookups.map(({ answer }) => answer)).toEqual(['status_500', 'status_500', 'completed']);
});

test('a receipt is forgotten when it is old', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { lookup: { forgets_after_ms: 60_000 } } });
  expect((await caller.receipt('a')).status).toBe(200);
  await caller.control('clock', { advanceMs: 60_000 });
  expect((await caller.receipt('a')).status).toBe(404);
});

test('lookups that never find do so until the script is changed', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { lookup: { finds: 'never' } } });
  expect((await caller.receipt('a')).status).toBe(404);
  await caller.control('lookup', { key: 'a', lookup: { finds: 'at_once' } });
  expect((await caller.receipt('a')).status).toBe(200);
});

test('a status alone is what every lookup answers, with its waiting time', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { lookup: { status: 429, retry_after_s: 3 } } });
  const { status, headers } = await caller.receipt('a');
  expect(status).toBe(429);
  expect(headers.get('retry-after')).toBe('3');
});

test('a lookup can hang', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { lookup: { hang: true } } });
  const asked = caller.receipt('a');
  expect(await isPending(asked)).toBe(true);
  expect((await caller.truth()).lookups).toMatchObject([{ answer: 'hang' }]);
});

test('lookups of a request that was dropped unread follow its script', async () => {
  const caller = await startSimulator();
  await caller.behave({ do: { drop: 'before_reading', lookup: { status: 500 } } });
  await expect(caller.send({ key: 'a' })).rejects.toThrow();
  expect((await caller.receipt('a')).status).toBe(500);
  expect((await caller.receipt('b')).status).toBe(404);
});

test('a receipt stays running until its release although the work is charged', async () => {
  const caller = await startSimulator();
  const simulate = { drop: 'after_accepting', lookup: { running_until_released: true } };
  await expect(caller.send({ key: 'a', simulate })).rejects.toThrow();
  expect((await caller.receipt('a')).json).toMatchObject({ status: 'running', charge: null });
  expect((await caller.send({ key: 'a' })).status).toBe(409);
  expect((await caller.truth()).totals.charged).toBe('4');
  await caller.control('release', { key: 'a' });
  expect((await caller.receipt('a')).json).toMatchObject({ status: 'completed' });
});

test('a receipt that is found with its release is 404 before it', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { lookup: { finds: 'after_release' } } });
  expect((await caller.receipt('a')).status).toBe(404);
  await caller.control('release', { key: 'a' });
  expect((await caller.receipt('a')).status).toBe(200);
});

test('a lookup can be spoilt while the answer was whole', async () => {
  const caller = await startSimulator();
  const sent = await caller.send({ key: 'a', simulate: { lookup: { body: 'garbage' } } });
  expect(sent.json['charge']).toEqual({ amount: '4', unit: 'credit' });
  const { text } = await caller.receipt('a');
  expect(() => JSON.parse(text) as unknown).toThrow();
});

test.each([
  ['absent', undefined],
  ['null', null],
])('a charge field that is %s leaves the usage to price by', async (charge_field, expected) => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { charge_field } });
  const { json } = await caller.receipt('a');
  expect(json['charge']).toEqual(expected);
  expect(json['usage']).toMatchObject({ completion_tokens: 4 });
});
