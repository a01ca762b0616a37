import { expect, test } from 'vitest';
import { isPending, startSimulator, until } from './caller.js';

const limitOf = (ticks: number): object => ({ limit: { ticks } });

test('a job is accepted with 202 and runs, and has cost nothing before its first tick', async () => {
  const caller = await startSimulator();
  const { status, json, headers } = await caller.create({ key: 'op-1:1' });
  expect(status).toBe(202);
  expect(json).toEqual({
    id: expect.stringMatching(/^job_[0-9a-f]{32}$/) as string,
    key: 'op-1:1',
    status: 'running',
  });
  expect(headers.has('idempotency-replayed')).toBe(false);
  await until(async () => (await caller.truth()).requests[0]?.answered !== null);
  const { requests, totals, charges } = await caller.truth();
  expect(requests).toMatchObject([
    {
      key: 'op-1:1',
      model: 'fake-job',
      maxTokens: null,
      limitTicks: 20,
      outcome: 'accepted',
      id: json['id'],
      executionNo: 1,
      state: 'running',
      bill: '20',
      charged: '0',
      answered: { status: 202 },
    },
  ]);
  expect(totals).toEqual({ received: 1, accepted: 1, charged: '0', cancels: 0, cancelled: 0 });
  expect(charges).toEqual([]);
});

test('each tick charges every running job one rate more, and books the new total', async () => {
  const caller = await startSimulator({ prices: ['dear-job=2.5/tick'] });
  const cheap = await caller.create({ key: 'cheap' });
  const dear = await caller.create({ key: 'dear', body: { model: 'dear-job' } });
  const { json } = await caller.tick(2);
  expect(json).toEqual({ tick: 2, running: [cheap.json['id'], dear.json['id']] });
  const { charges, requests } = await caller.truth();
  expect(charges.map(({ key, total, delta, cause }) => [key, total, delta, cause])).toEqual([
    ['cheap', '1', '1', 'tick'],
    ['dear', '2.5', '2.5', 'tick'],
    ['cheap', '2', '1', 'tick'],
    ['dear', '5', '2.5', 'tick'],
  ]);
  expect(requests.map(({ bill, charged }) => [bill, charged])).toEqual([
    ['20', '2'],
    ['50', '5'],
  ]);
});

test('a job ends completed with the tick of its limit, and not one tick earlier or later', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'a', body: limitOf(3) });
  expect((await caller.tick(2)).json['running']).toEqual([json['id']]);
  expect((await caller.status('a')).json).toMatchObject({ status: 'running', ticks: 2 });
  expect((await caller.tick(1)).json).toEqual({ tick: 3, running: [] });
  expect((await caller.status('a')).json).toMatchObject({ status: 'completed', ticks: 3 });
  expect((await caller.tick(5)).json).toEqual({ tick: 8, running: [] });
  expect((await caller.status('a')).json).toMatchObject({ ticks: 3 });
  const { requests, totals } = await caller.truth();
  expect(requests).toMatchObject([{ state: 'completed', bill: '3', charged: '3' }]);
  expect(totals.charged).toBe('3');
});

test('many ticks at once end each job at its own limit', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(2) });
  await caller.create({ key: 'b', body: limitOf(4) });
  await caller.tick(100);
  const { byKey } = await caller.truth();
  expect(byKey).toMatchObject({ a: { charged: '2' }, b: { charged: '4' } });
});

test('a job that overruns is charged above its bound before it completes', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(2), simulate: { overruns: 2 } });
  expect((await caller.truth()).requests[0]?.bill).toBe('4');
  expect((await caller.tick(3)).json['running']).toHaveLength(1);
  expect((await caller.charge('a')).json).toMatchObject({ final: false, charge: { amount: '3' } });
  await caller.tick(1);
  expect((await caller.status('a')).json).toMatchObject({ status: 'completed', ticks: 4 });
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '4' } });
});

test('a job can fail at its limit and has cost its ticks', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(2), simulate: { ends: 'failed' } });
  await caller.tick(2);
  expect((await caller.status('a')).json['status']).toBe('failed');
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '2' } });
});

test.each([
  ['30', ['1', '2', '30']],
  ['2', ['1', '2']],
  ['1.5', ['1', '1.5']],
  ['0', []],
])('a job that is to come to %s is charged %j, which never goes down', async (charge, totals) => {
  const caller = await startSimulator();
  await caller.create({ key: 'a', body: limitOf(3), simulate: { charge } });
  expect((await caller.truth()).requests[0]?.bill).toBe(charge);
  await caller.tick(3);
  const { charges } = await caller.truth();
  expect(charges.map(({ total }) => total)).toEqual(totals);
  expect((await caller.charge('a')).json).toMatchObject({
    final: true,
    charge: { amount: charge },
  });
});

test('the same key and body is the stored job as it stands now', async () => {
  const caller = await startSimulator();
  const first = await caller.create({ key: 'a' });
  const input = { text: 'Do something.' };
  const again = await caller.create({ key: 'a', body: { limit: { ticks: 20 }, input } });
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
  expect(again.json).toEqual(first.json);
  await caller.tick(20);
  const late = await caller.create({ key: 'a' });
  expect(late.json).toEqual({ ...first.json, status: 'completed' });
  const { requests, byKey } = await caller.truth();
  expect(requests.map(({ outcome, charged }) => [outcome, charged])).toEqual([
    ['accepted', '20'],
    ['replayed', '0'],
    ['replayed', '0'],
  ]);
  expect(byKey['a']).toMatchObject({ received: 3, accepted: 1, executions: 1, charged: '20' });
});

test('another body under the key of a job is 422 and starts nothing', async () => {
  const caller = await startSimulator();
  await caller.create({ key: 'a' });
  const other = await caller.create({ key: 'a', body: limitOf(21) });
  expect(other.status).toBe(422);
  expect(other.json['error']).toMatchObject({ type: 'idempotency_error', code: 'idempotency_key' });
  const { requests, totals } = await caller.truth();
  expect(requests[1]).toMatchObject({ reason: 'key_reused', limitTicks: 21, bill: null });
  expect(totals).toMatchObject({ received: 2, accepted: 1 });
});

test('of ten creates at one instant under one key one starts a job, and all hear its id', async () => {
  const caller = await startSimulator();
  const sends = Array.from({ length: 10 }, () => caller.create({ key: 'a' }));
  const answers = await Promise.all(sends);
  expect(answers.map(({ status }) => status).sort()).toEqual([
    ...Array.from({ length: 9 }, () => 200),
    202,
  ]);
  expect(new Set(answers.map(({ json }) => json['id'])).size).toBe(1);
  expect((await caller.truth()).totals).toMatchObject({ received: 10, accepted: 1 });
});

test('a provider that does not honour keys starts and charges a job for each create', async () => {
  const caller = await startSimulator();
  await caller.behave({ do: { honours_key: false } });
  const first = await caller.create({ key: 'a', body: limitOf(2) });
  const second = await caller.create({ key: 'a', body: limitOf(2) });
  expect([first.status, second.status]).toEqual([202, 202]);
  await caller.tick(2);
  const { byKey, requests } = await caller.truth();
  expect(byKey['a']).toMatchObject({ executions: 2, charged: '4' });
  expect(requests.map(({ executionNo }) => executionNo)).toEqual([1, 2]);
  expect((await caller.status('a')).json['id']).toBe(second.json['id']);
});

test.each([
  ['no limit', { limit: undefined }, 400, 'limit'],
  ['a limit of no tick', limitOf(0), 400, 'limit.ticks'],
  ['half a tick', limitOf(1.5), 400, 'limit.ticks'],
  ['an input that is no object', { input: 'text' }, 400, 'input'],
  ['no model', { model: undefined }, 400, 'model'],
  ['an unknown model', { model: 'unheard-of' }, 404, 'model'],
  ['a model of calls', { model: 'fake-priced' }, 404, 'model'],
])('a job with %s is refused in the error form', async (_what, body, status, param) => {
  const caller = await startSimulator();
  const answer = await caller.create({ key: 'a', body });
  expect(answer.status).toBe(status);
  expect(answer.json['error']).toMatchObject({ param });
  await caller.tick(1);
  expect((await caller.truth()).totals).toMatchObject({ received: 1, accepted: 0, charged: '0' });
});

test('a model of jobs answers no call', async () => {
  const caller = await startSimulator();
  expect((await caller.send({ body: { model: 'fake-job' } })).status).toBe(404);
});

test('no credential is 401 for every route of a job, and nothing is done', async () => {
  const caller = await startSimulator();
  const headers = { authorization: '' };
  const { json } = await caller.create({ key: 'a' });
  const paths = ['by-key/a', 'by-key/a/charge', String(json['id'])];
  for (const path of paths) {
    expect((await caller.ask(`/v1/jobs/${path}`, { headers })).status).toBe(401);
  }
  const path = `/v1/jobs/${String(json['id'])}/cancel`;
  expect((await caller.ask(path, { method: 'POST', headers })).status).toBe(401);
  expect((await caller.create({ key: 'b', headers })).status).toBe(401);
  const { totals, cancels } = await caller.truth();
  expect(totals).toMatchObject({ received: 2, accepted: 1, cancelled: 0 });
  expect(cancels).toMatchObject([{ key: 'a', answer: 'status_401', honouredAtTick: null }]);
});

test('a scripted refusal of a job comes before work, with its waiting time', async () => {
  const caller = await startSimulator();
  const simulate = { status: 503, retry_after_s: 7, lookup: { status: 500 } };
  const { status, headers } = await caller.create({ key: 'a', simulate });
  expect([status, headers.get('retry-after')]).toEqual([503, '7']);
  await caller.tick(1);
  expect((await caller.truth()).totals).toMatchObject({ accepted: 0, charged: '0' });
  expect([(await caller.status('a')).status, (await caller.charge('a')).status]).toEqual([
    500, 500,
  ]);
  expect((await caller.create({ key: 'a' })).status).toBe(202);
});

test('a create dropped unread leaves only its arrival and the script of its questions', async () => {
  const caller = await startSimulator();
  const charge_lookup = { status: 502 };
  await caller.behave({ times: 1, do: { drop: 'before_reading', charge_lookup } });
  await expect(caller.create({ key: 'a' })).rejects.toThrow('fetch failed');
  expect([(await caller.status('a')).status, (await caller.charge('a')).status]).toEqual([
    404, 502,
  ]);
  expect((await caller.truth()).requests).toMatchObject([
    { outcome: 'dropped_before_reading', model: null, limitTicks: null },
  ]);
});

test.each([
  ['dropped', { drop: 'after_accepting' }],
  ['answered with an error', { fail_after_accepting: 500 }],
])('a job whose create was %s runs, and a repeat finds it', async (_how, simulate) => {
  const caller = await startSimulator();
  const sent = await caller.create({ key: 'a', simulate }).catch(() => undefined);
  expect(sent?.status).toBe('drop' in simulate ? undefined : 500);
  await caller.tick(2);
  const again = await caller.create({ key: 'a' });
  expect([again.status, again.json['status']]).toEqual([200, 'running']);
  expect((await caller.charge('a')).json).toMatchObject({ charge: { amount: '2' } });
  expect((await caller.truth()).totals).toMatchObject({ received: 2, accepted: 1, charged: '2' });
});

test('a create that is never answered keeps its connection, and its job runs to its end', async () => {
  const caller = await startSimulator();
  const abort = new AbortController();
  const simulate = { answer: 'never' };
  const sent = caller.create({ key: 'a', simulate, signal: abort.signal, body: limitOf(1) });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  await caller.tick(1);
  expect(await isPending(sent)).toBe(true);
  expect((await caller.status('a')).json['status']).toBe('completed');
  abort.abort();
  await expect(sent).rejects.toThrow('abort');
  expect((await caller.truth()).requests[0]).toMatchObject({ charged: '1', answered: null });
});

test('a late create is answered on its release, with how its job stands then', async () => {
  const caller = await startSimulator();
  const simulate = { answer: 'late', until_released: true };
  const sent = caller.create({ key: 'a', simulate, body: limitOf(1) });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  await caller.tick(1);
  expect(await isPending(sent)).toBe(true);
  expect((await caller.create({ key: 'a', body: limitOf(1) })).status).toBe(200);
  const { json } = await caller.control('release', { key: 'a' });
  expect(json['released']).toHaveLength(1);
  expect((await sent).status).toBe(202);
  expect((await sent).json['status']).toBe('completed');
});

test('a late create is answered when the simulated clock has passed its delay', async () => {
  const caller = await startSimulator();
  const sent = caller.create({ simulate: { answer: 'late', delay_ms: 600_000 } });
  await until(async () => (await caller.truth()).totals.accepted === 1);
  await caller.control('clock', { advanceMs: 599_000 });
  expect(await isPending(sent)).toBe(true);
  await caller.control('clock', { advanceMs: 1_000 });
  expect((await sent).status).toBe(202);
});

test('the answer to a create can be spoilt, and its job runs', async () => {
  const caller = await startSimulator();
  const { text } = await caller.create({ key: 'a', simulate: { body: 'garbage' } });
  expect(() => JSON.parse(text) as unknown).toThrow();
  expect((await caller.status('a')).json['status']).toBe('running');
});

test('the id of a job can be left out, or be that of the job before', async () => {
  const caller = await startSimulator();
  const first = await caller.create({ key: 'a' });
  const twin = await caller.create({ key: 'b', simulate: { id: 'duplicate' } });
  const none = await caller.create({ key: 'c', simulate: { id: 'omitted' } });
  expect(twin.json['id']).toBe(first.json['id']);
  expect(none.json).toEqual({ key: 'c', status: 'running' });
  expect(new Set((await caller.truth()).requests.map(({ id }) => id)).size).toBe(3);
});

test('an odd id has a slash and a line break, and every route finds it when it is encoded', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'a', simulate: { id: 'odd' } });
  const id = String(json['id']);
  expect(id).toMatch(/^job\/\n\.\.[0-9a-f-]{36}$/);
  expect((await caller.statusOf(id)).json).toMatchObject({ id, key: 'a', status: 'running' });
  expect((await caller.chargeOf(id)).json).toMatchObject({ id, final: false });
  expect((await caller.cancel(id)).json).toMatchObject({ id, cancel: 'requested' });
  expect((await caller.ask(`/v1/jobs/${encodeURI(id)}`)).status).toBe(404);
});

test('an odd id of a call is found by its receipt when it is encoded', async () => {
  const caller = await startSimulator();
  const { json } = await caller.send({ simulate: { id: 'odd' } });
  const id = String(json['id']);
  expect(id).toContain('/\n');
  expect((await caller.ask(`/v1/receipts/${encodeURIComponent(id)}`)).json).toMatchObject({ id });
});

test('the contract at the root tells the routes of jobs, what they cost and how they are cancelled', async () => {
  const caller = await startSimulator();
  expect((await caller.ask('/')).json).toMatchObject({
    prices: { 'fake-job': '1 credit a tick' },
    jobs: {
      create: 'POST /v1/jobs',
      charges: ['GET /v1/jobs/by-key/:key/charge', 'GET /v1/jobs/:id/charge'],
      cancel: 'POST /v1/jobs/:id/cancel',
      idempotency: { kept_for_hours: 24 },
    },
  });
});
