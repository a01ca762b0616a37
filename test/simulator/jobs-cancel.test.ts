import { expect, test } from 'vitest';
import { isPending, startSimulator } from './caller.js';
import type { Caller } from './caller.js';

async function startJob(caller: Caller, cancel?: object, ticks = 20): Promise<unknown> {
  const simulate = cancel === undefined ? {} : { cancel };
  const { json } = await caller.create({ key: 'a', body: { limit: { ticks } }, simulate });
  return json['id'];
}

const cancelsOf = async (caller: Caller): Promise<unknown> =>
  (await caller.truth()).cancels.map(({ answer, honouredAtTick }) => [answer, honouredAtTick]);

test('a cancel is acknowledged and ends the job before it is charged another tick', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller);
  await caller.create({ key: 'b' });
  await caller.tick(3);
  const { status, json } = await caller.cancel(id);
  expect([status, json]).toEqual([202, { id, status: 'running', cancel: 'requested' }]);
  expect((await caller.status('a')).json).toMatchObject({
    status: 'cancelled',
    cancel: 'requested',
    ticks: 3,
  });
  expect((await caller.tick(2)).json['running']).toHaveLength(1);
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '3' } });
  const { requests, totals, byKey, cancels } = await caller.truth();
  expect(requests[0]).toMatchObject({ state: 'cancelled', bill: '3', charged: '3' });
  expect(totals).toMatchObject({ cancels: 1, cancelled: 1, charged: '8' });
  expect(byKey).toMatchObject({
    a: { cancels: 1, cancelled: 1, charged: '3' },
    b: { cancels: 0, cancelled: 0, charged: '5' },
  });
  expect(cancels).toMatchObject([
    {
      seq: 1,
      tick: expect.any(Number) as number,
      realAt: expect.any(String) as string,
      key: 'a',
      id,
      answer: 'acknowledged',
      honouredAtTick: 3,
    },
  ]);
});

test('a job that is cancelled before its first tick has cost nothing', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller);
  await caller.cancel(id);
  await caller.tick(1);
  expect((await caller.charge('a')).json).toMatchObject({
    final: true,
    usage: { ticks: 0 },
    charge: { amount: '0' },
  });
  expect((await caller.truth()).charges).toEqual([]);
});

test('a cancel that is honoured after two ticks ends the job when the second is charged', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller, { honoured_after_ticks: 2 });
  await caller.tick(3);
  expect((await caller.cancel(id)).status).toBe(202);
  await caller.tick(1);
  expect((await caller.status('a')).json).toMatchObject({ status: 'running', cancel: 'requested' });
  const truth = await caller.truth();
  expect(truth.cancels).toMatchObject([{ honouredAtTick: null }]);
  expect(truth.requests).toMatchObject([{ state: 'running', bill: '20', charged: '4' }]);
  await caller.tick(1);
  expect((await caller.status('a')).json).toMatchObject({ status: 'cancelled', ticks: 5 });
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '5' } });
  expect(await cancelsOf(caller)).toEqual([['acknowledged', 5]]);
});

test('a second cancel while the first is requested is 202 again and does not put it off', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller, { honoured_after_ticks: 2 });
  await caller.cancel(id);
  await caller.tick(1);
  expect((await caller.cancel(id)).status).toBe(202);
  await caller.tick(1);
  expect((await caller.status('a')).json).toMatchObject({ status: 'cancelled', ticks: 2 });
  expect(await cancelsOf(caller)).toEqual([
    ['acknowledged', 2],
    ['acknowledged', 2],
  ]);
});

test('a cancel that would be honoured with the last tick finds the work done', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller, { honoured_after_ticks: 2 }, 5);
  await caller.tick(3);
  await caller.cancel(id);
  await caller.tick(2);
  expect((await caller.status('a')).json).toMatchObject({ status: 'completed', ticks: 5 });
  expect(await cancelsOf(caller)).toEqual([['acknowledged', null]]);
});

test('a cancel that stops says so with 200', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller, { answer: 'stopped' });
  await caller.tick(2);
  const { status, json } = await caller.cancel(id);
  expect([status, json]).toEqual([200, { id, status: 'cancelled' }]);
  expect((await caller.status('a')).json).toMatchObject({ status: 'cancelled', ticks: 2 });
  expect(await cancelsOf(caller)).toEqual([['stopped', 2]]);
});

test.each(['acknowledged', 'stopped'])(
  'a cancel that lies is %s, and the job runs to its bound',
  async (answer) => {
    const caller = await startSimulator();
    const id = await startJob(caller, { answer, lies: true }, 4);
    await caller.tick(1);
    expect((await caller.cancel(id)).status).toBe(answer === 'stopped' ? 200 : 202);
    await caller.tick(9);
    expect((await caller.status('a')).json).toMatchObject({
      status: 'completed',
      cancel: 'requested',
      ticks: 4,
    });
    expect(await cancelsOf(caller)).toEqual([[answer, null]]);
    expect((await caller.truth()).totals).toMatchObject({ charged: '4', cancels: 1, cancelled: 0 });
  },
);

test.each([
  [{ answer: 'refused' }, 409, 'not_cancellable', 'refused'],
  [{ answer: 'unsupported' }, 405, 'cancel_unsupported', 'unsupported'],
  [{ status: 503 }, 503, null, 'status_503'],
])('a cancel by %j answers %i and does nothing', async (cancel, status, code, answer) => {
  const caller = await startSimulator();
  const id = await startJob(caller, cancel, 3);
  const refused = await caller.cancel(id);
  expect(refused.status).toBe(status);
  expect(refused.json['error']).toMatchObject({ code, message: expect.any(String) as string });
  await caller.tick(1);
  expect((await caller.status('a')).json).toMatchObject({ status: 'running', cancel: 'none' });
  await caller.tick(2);
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '3' } });
  expect(await cancelsOf(caller)).toEqual([[answer, null]]);
});

test('a cancel whose answer is lost has ended the job, and another one is told so', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller, { answer: 'drop' });
  await caller.tick(2);
  await expect(caller.cancel(id)).rejects.toThrow('fetch failed');
  expect((await caller.status('a')).json).toMatchObject({ status: 'cancelled', ticks: 2 });
  expect((await caller.cancel(id)).json['error']).toMatchObject({ code: 'already_ended' });
  expect(await cancelsOf(caller)).toEqual([
    ['drop', 2],
    ['already_ended', null],
  ]);
});

test('a cancel that hangs has no effect', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller, { answer: 'hang' });
  const asked = caller.cancel(id);
  asked.catch(() => undefined);
  expect(await isPending(asked)).toBe(true);
  await caller.tick(1);
  expect((await caller.status('a')).json).toMatchObject({ status: 'running', cancel: 'none' });
  expect(await cancelsOf(caller)).toEqual([['hang', null]]);
});

test.each([
  ['completed', 2, {}],
  ['failed', 2, { ends: 'failed' }],
])('a cancel of a job that has %s is 409 and changes nothing', async (state, ticks, simulate) => {
  const caller = await startSimulator();
  const body = { limit: { ticks } };
  const { json } = await caller.create({ key: 'a', body, simulate });
  await caller.tick(ticks);
  const refused = await caller.cancel(json['id']);
  expect(refused.status).toBe(409);
  expect(refused.json['error']).toMatchObject({ code: 'already_ended', type: 'conflict_error' });
  expect((await caller.status('a')).json).toMatchObject({ status: state, cancel: 'none' });
  expect(await cancelsOf(caller)).toEqual([['already_ended', null]]);
});

test('a cancel of an unknown job is 404 and is booked', async () => {
  const caller = await startSimulator();
  expect((await caller.cancel('job_0')).json['error']).toMatchObject({ type: 'not_found_error' });
  const { cancels, totals } = await caller.truth();
  expect(cancels).toMatchObject([{ key: null, id: null, answer: 'not_found' }]);
  expect(totals).toMatchObject({ cancels: 1, cancelled: 0 });
});

test('a job that is to come to a charge has come to it when it is cancelled too', async () => {
  const caller = await startSimulator();
  const { json } = await caller.create({ key: 'a', simulate: { charge: 7 } });
  await caller.tick(2);
  await caller.cancel(json['id']);
  expect((await caller.charge('a')).json).toMatchObject({ final: true, charge: { amount: '7' } });
});

test('how a cancel goes can be changed while the job runs', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller, { answer: 'acknowledged', lies: true });
  await caller.cancel(id);
  await caller.tick(3);
  const changed = await caller.control('cancel', { key: 'a', cancel: { answer: 'stopped' } });
  expect(changed.json).toEqual({ id, cancel: { answer: 'stopped' } });
  expect((await caller.cancel(id)).status).toBe(200);
  expect((await caller.status('a')).json).toMatchObject({ status: 'cancelled', ticks: 3 });
  expect(await cancelsOf(caller)).toEqual([
    ['acknowledged', null],
    ['stopped', 3],
  ]);
  expect((await caller.control('cancel', { key: 'b', cancel: {} })).status).toBe(404);
});

test('a switch in the header decides one cancel alone', async () => {
  const caller = await startSimulator();
  const id = await startJob(caller);
  const refused = await caller.cancel(id, { simulate: { cancel: { answer: 'refused' } } });
  expect(refused.status).toBe(409);
  expect((await caller.cancel(id)).status).toBe(202);
});

test.each([
  [{ answer: 'stoped' }, 'the nearest known word is "stopped"'],
  [{ lie: true }, 'cancel.lie: unknown word, the nearest known word is "lies"'],
  [{ status: 503, answer: 'hang' }, 'cancel.status: say this or "answer", not both'],
  [{ lies: true, honoured_after_ticks: 1 }, 'cancel.lies: say this or "honoured_after_ticks"'],
  [{ answer: 'refused', honoured_after_ticks: 1 }, 'needs a cancel that has an effect'],
  [{ status: 500, lies: true }, 'needs a cancel that is taken'],
])('the cancel %j is refused by name, in a rule and for one job', async (cancel, text) => {
  const caller = await startSimulator();
  await startJob(caller);
  const rule = await caller.behave({ do: { cancel } });
  const order = await caller.control('cancel', { key: 'a', cancel });
  for (const { status, json } of [rule, order]) {
    expect(status).toBe(400);
    expect((json['error'] as { message: string }).message).toContain(text);
  }
});
