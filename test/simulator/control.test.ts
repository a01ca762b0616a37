import { expect, test } from 'vitest';
import { isPending, startSimulator, until } from './caller.js';

test('the first rule with times left decides, and each counts what it saw', async () => {
  const caller = await startSimulator();
  await caller.behave({ times: 1, do: { status: 503 } });
  await caller.behave({ match: { model: 'fake-priced' }, do: { status: 429 } });
  const statuses: number[] = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await caller.send()).status);
  statuses.push((await caller.send({ body: { model: 'fake-direct' } })).status);
  expect(statuses).toEqual([503, 429, 429, 200]);
  expect((await caller.ask('/control/behaviours')).json).toMatchObject({
    behaviours: [
      { seenCount: 4, usedCount: 1 },
      { seenCount: 3, usedCount: 2 },
    ],
  });
});

test('a rule can wait for the second request of a key prefix', async () => {
  const caller = await startSimulator();
  await caller.behave({ match: { keyPrefix: 'op-1:', nth: 2 }, do: { status: 503 } });
  const keys = ['op-1:1', 'op-2:1', 'op-1:2', 'op-1:3'];
  const statuses: number[] = [];
  for (const key of keys) statuses.push((await caller.send({ key })).status);
  expect(statuses).toEqual([200, 200, 503, 200]);
});

test('a rule that names a model goes before a later one that drops unread', async () => {
  const caller = await startSimulator();
  await caller.behave({ match: { model: 'fake-direct' }, do: { status: 503 } });
  await caller.behave({ do: { drop: 'before_reading' } });
  expect((await caller.send({ body: { model: 'fake-direct' } })).status).toBe(503);
  await expect(caller.send()).rejects.toThrow();
});

test('cleared rules decide nothing', async () => {
  const caller = await startSimulator();
  await caller.behave({ do: { status: 503 } });
  await caller.ask('/control/behaviours', { method: 'DELETE' });
  expect((await caller.send()).status).toBe(200);
});

test('a switch in the header goes before every rule and uses none', async () => {
  const caller = await startSimulator();
  await caller.behave({ times: 1, do: { status: 503 } });
  expect((await caller.send({ simulate: { status: 429 } })).status).toBe(429);
  expect((await caller.send()).status).toBe(503);
});

test.each([
  [{ do: { anwser: 'late' } }, 'do.anwser: unknown word, the nearest known word is "answer"'],
  [{ do: { answer: 'lat' } }, 'do.answer: unknown word "lat", the nearest known word is "late"'],
  [{ do: { lookup: { find: 'never' } } }, 'the nearest known word is "finds"'],
  [{ match: { kye: 'a' }, do: {} }, 'match.kye: unknown word, the nearest known word is "key"'],
  [{ time: 1, do: {} }, 'time: unknown word, the nearest known word is "times"'],
  [{ do: { status: 500 } }, 'do.status: unknown word "500"'],
  [{ do: { charge: '4,5' } }, 'do.charge'],
  [{ do: { answer: 'late' } }, '"late" needs "delay_ms" or "until_released"'],
  [{ do: { delay_ms: 5 } }, 'need "late"'],
  [{ do: { status: 503, drop: 'after_accepting' } }, 'answered or dropped'],
  [{ do: { lookup: { finds: 'after_ms' } } }, 'do.lookup.after_ms'],
  [{ match: { model: 'm' }, do: { drop: 'before_reading' } }, 'match.model'],
  [{}, 'do'],
])('the rule %j is refused by name and not added', async (rule, text) => {
  const caller = await startSimulator();
  const { status, json } = await caller.behave(rule);
  expect(status).toBe(400);
  expect((json['error'] as { message: string }).message).toContain(text);
  expect((await caller.ask('/control/behaviours')).json).toEqual({ behaviours: [] });
});

test('an unknown word in the header is refused and starts nothing', async () => {
  const caller = await startSimulator();
  const { status, json } = await caller.send({ simulate: { usge: 'null' } });
  expect(status).toBe(400);
  expect((json['error'] as { message: string }).message).toContain('"usage"');
  expect((await caller.truth()).totals.accepted).toBe(0);
});

test('a release of one key leaves the others waiting', async () => {
  const caller = await startSimulator();
  await caller.behave({ do: { answer: 'late', until_released: true } });
  const [first, second] = [caller.send({ key: 'a' }), caller.send({ key: 'b' })];
  await until(async () => (await caller.truth()).totals.accepted === 2);
  const { json } = await caller.control('release', { key: 'a' });
  expect(json['released']).toHaveLength(1);
  expect((await first).status).toBe(200);
  expect(await isPending(second)).toBe(true);
  expect((await caller.control('release', {})).status).toBe(400);
});

test('finishing with a usage books what that usage costs and lets the answer go', async () => {
  const caller = await startSimulator();
  const simulate = { answer: 'late', until_released: true, charge_at: 'answer' };
  const sent = caller.send({ key: 'a', simulate });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  await caller.control('finish', { key: 'a', usage: { completion_tokens: 3 } });
  expect((await sent).json).toMatchObject({
    usage: { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 },
    charge: { amount: '3' },
  });
  expect((await caller.truth()).charges).toMatchObject([{ total: '3', cause: 'finish' }]);
  expect((await caller.control('finish', { key: 'a' })).status).toBe(409);
  expect((await caller.control('finish', { key: 'b' })).status).toBe(404);
});

test('finishing what never answers completes its receipt with the stated charge', async () => {
  const caller = await startSimulator();
  const abort = new AbortController();
  const simulate = { answer: 'never', charge_at: 'answer' };
  const sent = caller.send({ key: 'a', simulate, signal: abort.signal });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  expect((await caller.receipt('a')).json['status']).toBe('running');
  await caller.control('finish', { key: 'a', charge: '2.25' });
  expect((await caller.receipt('a')).json).toMatchObject({
    status: 'completed',
    charge: { amount: '2.25' },
  });
  expect(await isPending(sent)).toBe(true);
  abort.abort();
  await expect(sent).rejects.toThrow();
});

test('a correction changes the bill and what is stated, and both totals stay in the book', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a' });
  await caller.control('correct', { key: 'a', charge: '6' });
  await caller.control('correct', { key: 'a', charge: '1' });
  expect((await caller.receipt('a')).json['charge']).toEqual({ amount: '1', unit: 'credit' });
  const { charges, totals } = await caller.truth();
  expect(totals.charged).toBe('1');
  expect(charges.map(({ total, delta, cause }) => [total, delta, cause])).toEqual([
    ['4', '4', 'accept'],
    ['6', '2', 'correction'],
    ['1', '-5', 'correction'],
  ]);
});

test('what was stated to a client is booked when it has left, in order', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a' });
  await caller.send({ key: 'a' });
  await caller.receipt('a');
  await until(async () => (await caller.truth()).reports.length === 3);
  const { reports, requests } = await caller.truth();
  expect(reports.map(({ via, charge }) => [via, charge])).toEqual([
    ['answer', '4'],
    ['replay', '4'],
    ['lookup', '4'],
  ]);
  expect(requests.map(({ answered }) => answered?.status)).toEqual([200, 200]);
});

test('the simulated clock stands beside the real one in every entry', async () => {
  const caller = await startSimulator();
  await caller.control('clock', { advanceMs: 3_600_000 });
  await caller.send({ key: 'a' });
  const [request] = (await caller.truth()).requests;
  const { at = '', realAt = '' } = request ?? {};
  expect(Date.parse(at) - Date.parse(realAt)).toBe(3_600_000);
  expect(Math.abs(Date.parse(realAt) - Date.now())).toBeLessThan(5_000);
  expect(request?.chargedAt).toBe(at);
  expect(request?.chargedRealAt).toBe(realAt);
});
