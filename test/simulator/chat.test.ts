import { expect, test } from 'vitest';
import { startSimulator, until } from './caller.js';

test('an answer uses all of its tokens and states one credit for each', async () => {
  const caller = await startSimulator();
  const { status, headers, json } = await caller.send({ key: 'op-1:1' });
  expect(status).toBe(200);
  expect(headers.get('x-request-id')).toMatch(/^req-/);
  expect(json).toMatchObject({
    object: 'chat.completion',
    model: 'fake-priced',
    choices: [{ index: 0, message: { role: 'assistant' }, finish_reason: 'length' }],
    usage: { prompt_tokens: 4, completion_tokens: 4, total_tokens: 8 },
    charge: { amount: '4', unit: 'credit' },
  });
  expect(json['id']).toMatch(/^chatcmpl-/);
});

test.each([
  ['fake-priced', '4'],
  ['fake-direct', '4'],
  ['fake-fallback', '8'],
  ['fake-unpriced', '4'],
  ['flat', '2.5'],
  ['fraction', '0.012'],
])('%s costs %s credits for four tokens', async (model, amount) => {
  const caller = await startSimulator({ prices: ['flat=2.5/request', 'fraction=0.003'] });
  const { json } = await caller.send({ body: { model } });
  expect(json['charge']).toEqual({ amount, unit: 'credit' });
  expect((await caller.truth()).totals.charged).toBe(amount);
});

test('max_completion_tokens goes before max_tokens', async () => {
  const caller = await startSimulator();
  const { json } = await caller.send({ body: { max_completion_tokens: 9 } });
  expect(json['charge']).toEqual({ amount: '9', unit: 'credit' });
});

test.each([
  ['no max_tokens', { max_tokens: undefined }, 400, 'max_tokens'],
  ['a negative max_tokens', { max_tokens: -1 }, 400, 'max_tokens'],
  ['no messages', { messages: [] }, 400, 'messages'],
  ['no model', { model: undefined }, 400, 'model'],
  ['an unknown model', { model: 'unheard-of' }, 404, 'model'],
])('%s is refused in the error form and costs nothing', async (_what, body, status, param) => {
  const caller = await startSimulator();
  const answer = await caller.send({ key: 'op-1:1', body });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('x-request-id')).toMatch(/^req-/);
  expect(answer.json['error']).toMatchObject({ param });
  const { totals, requests } = await caller.truth();
  expect(totals).toMatchObject({ received: 1, accepted: 0, charged: '0' });
  expect(requests[0]).toMatchObject({ outcome: 'refused', key: 'op-1:1', id: null });
});

test('a body that is not JSON is refused with 400', async () => {
  const caller = await startSimulator();
  const answer = await caller.ask('/v1/chat/completions', { method: 'POST', body: '{' });
  expect(answer.status).toBe(400);
  expect(answer.json['error']).toMatchObject({ type: 'invalid_request_error' });
});

test('no credential is 401 for a create and for a lookup, and nothing is charged', async () => {
  const caller = await startSimulator();
  const create = await caller.send({ headers: { authorization: '' } });
  const lookup = await caller.ask('/v1/receipts/by-key/op-1', { headers: { authorization: '' } });
  expect([create.status, lookup.status]).toEqual([401, 401]);
  expect(create.json['error']).toMatchObject({ type: 'authentication_error', code: null });
  expect((await caller.truth()).totals).toMatchObject({ received: 1, accepted: 0, charged: '0' });
});

test('a stream ends in a chunk with usage and charge when it is asked for, then the mark', async () => {
  const caller = await startSimulator();
  const body = { stream: true, stream_options: { include_usage: true } };
  const { headers, text } = await caller.send({ body });
  expect(headers.get('content-type')).toBe('text/event-stream');
  const lines = text.trim().split('\n\n');
  expect(lines.at(-1)).toBe('data: [DONE]');
  const last = JSON.parse(lines.at(-2)?.slice('data: '.length) ?? '') as unknown;
  expect(last).toMatchObject({
    object: 'chat.completion.chunk',
    choices: [],
    usage: { completion_tokens: 4 },
    charge: { amount: '4' },
  });
});

test('a stream that was not asked for usage says none, and is charged', async () => {
  const caller = await startSimulator();
  const { text } = await caller.send({ key: 'op-1:1', body: { stream: true } });
  expect(text).not.toContain('usage');
  expect(text).not.toContain('charge');
  await until(async () => (await caller.truth()).requests[0]?.answered !== null);
  const { totals, reports } = await caller.truth();
  expect(totals.charged).toBe('4');
  expect(reports).toEqual([]);
});

test('the same key and body is answered from the first execution, in any order of fields', async () => {
  const caller = await startSimulator();
  const first = await caller.send({ key: 'op-1:1' });
  const again = await caller.send({
    key: 'op-1:1',
    body: { max_tokens: 4, model: 'fake-priced', stream: undefined },
  });
  expect(again.status).toBe(200);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect(first.headers.has('idempotency-replayed')).toBe(false);
  expect(again.json).toEqual(first.json);
  const { requests, byKey } = await caller.truth();
  expect(requests.map(({ outcome, charged }) => [outcome, charged])).toEqual([
    ['accepted', '4'],
    ['replayed', '0'],
  ]);
  expect(byKey['op-1:1']).toMatchObject({ received: 2, accepted: 1, charged: '4', executions: 1 });
});

test('another body under a used key is 422 and starts nothing', async () => {
  const caller = await startSimulator();
  await caller.send({ key: 'op-1:1' });
  const other = await caller.send({ key: 'op-1:1', body: { max_tokens: 5 } });
  expect(other.status).toBe(422);
  expect((await caller.truth()).totals).toMatchObject({ received: 2, accepted: 1, charged: '4' });
});

test('a repeat of a running request is 409, and of ten at one instant one starts work', async () => {
  const caller = await startSimulator();
  await caller.behave({ times: 1, do: { answer: 'late', until_released: true } });
  const sends = Array.from({ length: 10 }, () => caller.send({ key: 'op-1:1' }));
  await until(async () => (await caller.truth()).totals.received === 10);
  await caller.control('release', { key: 'op-1:1' });
  const statuses = (await Promise.all(sends)).map(({ status }) => status).sort();
  expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 409)]);
  expect((await caller.truth()).totals).toMatchObject({ received: 10, accepted: 1, charged: '4' });
});

test('a provider that does not honour keys executes and charges each repeat', async () => {
  const caller = await startSimulator();
  await caller.behave({ do: { honours_key: false } });
  const first = await caller.send({ key: 'op-1:1' });
  const second = await caller.send({ key: 'op-1:1' });
  expect(second.json['id']).not.toBe(first.json['id']);
  const { byKey, requests } = await caller.truth();
  expect(byKey['op-1:1']).toMatchObject({ received: 2, accepted: 2, charged: '8', executions: 2 });
  expect(requests.map(({ executionNo }) => executionNo)).toEqual([1, 2]);
});

test('requests without a key are all executed and stand under null', async () => {
  const caller = await startSimulator();
  await caller.send();
  await caller.send();
  const { byKey, requests } = await caller.truth();
  expect(requests.map(({ key }) => key)).toEqual([null, null]);
  expect(byKey['null']).toMatchObject({ executions: 2, charged: '8' });
});

test('the contract at the root says that 401 and 503 are uncharged', async () => {
  const caller = await startSimulator({ prices: ['fake-priced=3'] });
  expect((await caller.ask('/')).json).toMatchObject({
    prices: { 'fake-priced': '3 credit a completion token' },
    refusals: [
      { status: 401, charged: false },
      { status: 503, charged: false },
    ],
  });
});
