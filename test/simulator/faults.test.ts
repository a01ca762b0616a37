import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { isPending, startSimulator, until } from './caller.js';

test('a request dropped before reading leaves no trace but its arrival', async () => {
  const caller = await startSimulator();
  await caller.behave({ match: { key: 'op-1:1' }, times: 1, do: { drop: 'before_reading' } });
  await expect(caller.send({ key: 'op-1:1' })).rejects.toThrow('fetch failed');
  expect((await caller.receipt('op-1:1')).status).toBe(404);
  const { requests, totals } = await caller.truth();
  expect(requests[0]).toMatchObject({
    outcome: 'dropped_before_reading',
    model: null,
    charged: '0',
  });
  expect(totals).toMatchObject({ received: 1, accepted: 0, charged: '0' });
  expect((await caller.send({ key: 'op-1:1' })).status).toBe(200);
});

test('a request is dropped before its body has arrived', async () => {
  const caller = await startSimulator();
  await caller.behave({ do: { drop: 'before_reading' } });
  const { port } = new URL(caller.url);
  const closed = new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n');
    });
    socket.on('error', () => undefined);
    socket.on('close', resolve);
  });
  await closed;
  expect((await caller.truth()).requests[0]?.outcome).toBe('dropped_before_reading');
});

test('a request dropped after accepting is executed, charged once and found', async () => {
  const caller = await startSimulator();
  await caller.behave({ times: 1, do: { drop: 'after_accepting' } });
  await expect(caller.send({ key: 'op-1:1' })).rejects.toThrow('fetch failed');
  const { status, json } = await caller.receipt('op-1:1');
  expect(status).toBe(200);
  expect(json).toMatchObject({ key: 'op-1:1', status: 'completed', charge: { amount: '4' } });
  const again = await caller.send({ key: 'op-1:1' });
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect((await caller.truth()).totals).toMatchObject({ received: 2, accepted: 1, charged: '4' });
});

test.each([400, 401, 403, 404, 413, 429, 503])(
  'a scripted %s is refused before work and costs nothing',
  async (status) => {
    const caller = await startSimulator();
    const answer = await caller.send({ key: 'op-1:1', simulate: { status, retry_after_s: 7 } });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('retry-after')).toBe('7');
    expect(answer.json['error']).toHaveProperty('message');
    expect((await caller.truth()).totals).toMatchObject({ received: 1, accepted: 0, charged: '0' });
  },
);

test('a refusal of a proxy in between is not in the form of the provider', async () => {
  const caller = await startSimulator();
  const { status, headers, text } = await caller.send({ simulate: { status: 503, body: 'html' } });
  expect(status).toBe(503);
  expect(headers.get('content-type')).toBe('text/html');
  expect(headers.has('x-request-id')).toBe(false);
  expect(text).toMatch(/^<html>/);
});

test('a 500 after accepting is charged, and its receipt and its repeat say failed', async () => {
  const caller = await startSimulator();
  const simulate = { fail_after_accepting: 500 };
  expect((await caller.send({ key: 'op-1:1', simulate })).status).toBe(500);
  const { json } = await caller.receipt('op-1:1');
  expect(json).toMatchObject({ status: 'failed', charge: { amount: '4' } });
  const again = await caller.send({ key: 'op-1:1' });
  expect(again.status).toBe(500);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect((await caller.truth()).totals.charged).toBe('4');
});

test('a 500 whose work is said to have completed is repeated with its answer', async () => {
  const caller = await startSimulator();
  const simulate = { fail_after_accepting: 502, ends: 'completed' };
  expect((await caller.send({ key: 'op-1:1', simulate })).status).toBe(502);
  expect((await caller.receipt('op-1:1')).json['status']).toBe('completed');
  expect((await caller.send({ key: 'op-1:1' })).status).toBe(200);
});

test('a stream can fail behind its first chunk, and is charged', async () => {
  const caller = await startSimulator();
  const simulate = { fail_after_accepting: 500, fail_at: 'first_chunk' };
  const { status, text } = await caller.send({ simulate, body: { stream: true } });
  expect(status).toBe(200);
  expect(text.trim().split('\n\n')).toHaveLength(2);
  expect(text).toContain('"error"');
  expect(text).not.toContain('[DONE]');
  expect((await caller.truth()).totals.charged).toBe('4');
});

test('an accepted request that is never answered is charged and keeps its connection', async () => {
  const caller = await startSimulator();
  await caller.behave({ times: 1, do: { answer: 'never' } });
  const abort = new AbortController();
  const sent = caller.send({ key: 'op-1:1', signal: abort.signal });
  expect(await isPending(sent)).toBe(true);
  expect((await caller.receipt('op-1:1')).json).toMatchObject({ charge: { amount: '4' } });
  abort.abort();
  await expect(sent).rejects.toThrow('abort');
  const { requests } = await caller.truth();
  expect(requests[0]).toMatchObject({ outcome: 'accepted', charged: '4', answered: null });
});

test.each([
  ['accept', '4', 'accept'],
  ['answer', '0', 'answer'],
])('a late answer charged at %s has cost %s before it goes', async (charge_at, before, cause) => {
  const caller = await startSimulator();
  const simulate = { answer: 'late', until_released: true, charge_at };
  const sent = caller.send({ key: 'op-1:1', simulate });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  expect((await caller.receipt('op-1:1')).json).toEqual({
    id: expect.stringMatching(/^chatcmpl-/) as string,
    key: 'op-1:1',
    status: 'running',
    model: 'fake-priced',
    usage: null,
    charge: null,
  });
  expect(await isPending(sent)).toBe(true);
  expect((await caller.truth()).totals.charged).toBe(before);
  await caller.control('release', { all: true });
  expect((await sent).json['charge']).toEqual({ amount: '4', unit: 'credit' });
  const { totals, charges } = await caller.truth();
  expect(totals.charged).toBe('4');
  expect(charges.map((charge) => charge.cause)).toEqual([cause]);
});

test('a delay ends early when the simulated clock is moved past it', async () => {
  const caller = await startSimulator();
  const sent = caller.send({ simulate: { answer: 'late', delay_ms: 600_000 } });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  await caller.control('clock', { advanceMs: 599_000 });
  expect(await isPending(sent)).toBe(true);
  await caller.control('clock', { advanceMs: 1_000 });
  expect((await sent).status).toBe(200);
});

test('a delay passes by itself', async () => {
  const caller = await startSimulator();
  const startMs = performance.now();
  await caller.send({ simulate: { answer: 'late', delay_ms: 80 } });
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(78);
});

test('work goes on and is booked when its client has left', async () => {
  const caller = await startSimulator();
  const abort = new AbortController();
  const simulate = { answer: 'late', until_released: true, charge_at: 'answer' };
  const sent = caller.send({ key: 'op-1:1', simulate, signal: abort.signal });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  abort.abort();
  await expect(sent).rejects.toThrow('abort');
  await caller.control('release', { key: 'op-1:1' });
  const { requests, reports } = await caller.truth();
  expect(requests[0]).toMatchObject({ charged: '4', answered: null });
  expect(reports).toEqual([]);
});

test.each([
  ['garbage', 'application/json'],
  ['html', 'text/html'],
])('a body of %s cannot be read although the work is charged', async (body, type) => {
  const caller = await startSimulator();
  const { status, headers, text } = await caller.send({ simulate: { body } });
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe(type);
  expect(() => JSON.parse(text) as unknown).toThrow();
  const { totals, reports } = await caller.truth();
  expect(totals.charged).toBe('4');
  expect(reports).toEqual([]);
});

test.each([[false], [true]])('a truncated body breaks off, streamed: %s', async (stream) => {
  const caller = await startSimulator();
  await expect(
    caller.send({ simulate: { body: 'truncated' }, body: { stream } }),
  ).rejects.toThrow();
  expect((await caller.truth()).totals.charged).toBe('4');
});

test.each([
  ['missing', undefined],
  ['null', null],
  ['zero', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ['inconsistent', { prompt_tokens: 4, completion_tokens: 4, total_tokens: 15 }],
  ['negative', { prompt_tokens: 4, completion_tokens: -4, total_tokens: 0 }],
])('usage that is %s is so in the answer and in the receipt', async (usage, expected) => {
  const caller = await startSimulator();
  const { json } = await caller.send({ key: 'op-1:1', simulate: { usage } });
  const receipt = await caller.receipt('op-1:1');
  expect(json['usage']).toEqual(expected);
  expect(receipt.json['usage']).toEqual(expected);
  expect(receipt.json['charge']).toEqual({ amount: '4', unit: 'credit' });
});

test('usage and charge that come later are shown from the third lookup on', async () => {
  const caller = await startSimulator();
  const { json } = await caller.send({ key: 'a', simulate: { usage: 'later', later_lookups: 2 } });
  expect(json).not.toHaveProperty('usage');
  expect(json).not.toHaveProperty('charge');
  const shown: unknown[] = [];
  for (let lookup = 0; lookup < 3; lookup += 1) {
    shown.push((await caller.receipt('a')).json['charge']);
  }
  expect(shown).toEqual([undefined, undefined, { amount: '4', unit: 'credit' }]);
});

test('usage that comes later without a count comes with a release', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'a', simulate: { usage: 'later', charge_field: 'absent' } });
  expect((await caller.receipt('a')).json).not.toHaveProperty('usage');
  await caller.control('release', { key: 'a' });
  expect((await caller.receipt('a')).json['usage']).toMatchObject({ completion_tokens: 4 });
  expect((await caller.receipt('a')).json).not.toHaveProperty('charge');
});

test('more tokens than were asked for are stated and charged', async () => {
  const caller = await startSimulator();
  const { json } = await caller.send({ simulate: { completion_tokens: 6 } });
  expect(json['usage']).toMatchObject({ completion_tokens: 6 });
  expect(json['charge']).toEqual({ amount: '6', unit: 'credit' });
  const fewer = await caller.send({ simulate: { completion_tokens: 1 } });
  expect(fewer.json['choices']).toMatchObject([{ finish_reason: 'stop' }]);
  expect((await caller.truth()).totals.charged).toBe('7');
});

test('an explicit charge goes before every price', async () => {
  const caller = await startSimulator();
  const { json } = await caller.send({ simulate: { charge: '55.50' } });
  expect(json['charge']).toEqual({ amount: '55.5', unit: 'credit' });
  expect((await caller.truth()).totals.charged).toBe('55.5');
});

test('an id can be left out, or be that of the request before', async () => {
  const caller = await startSimulator();
  const first = await caller.send();
  const twin = await caller.send({ simulate: { id: 'duplicate' } });
  const none = await caller.send({ simulate: { id: 'omitted' } });
  expect(twin.json['id']).toBe(first.json['id']);
  expect(none.json).not.toHaveProperty('id');
  expect(new Set((await caller.truth()).requests.map(({ id }) => id)).size).toBe(3);
});

test('another model than the asked one can be stated', async () => {
  const caller = await startSimulator();
  const { json } = await caller.send({ key: 'a', simulate: { stated_model: 'fake-fallback' } });
  expect(json['model']).toBe('fake-fallback');
  expect((await caller.receipt('a')).json['model']).toBe('fake-fallback');
});
