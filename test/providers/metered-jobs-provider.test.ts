import { describe, expect, test } from 'vitest';
import type { Unit } from '../../domain/money.js';
import { createMeteredJobsProvider } from '../../providers/metered-jobs/metered-jobs-provider.js';
import type { DispatchRequest } from '../../providers/port.js';
import { findClosedPort, never, startHttpServer, type Reply } from './local-server.js';

const request: DispatchRequest = {
  idempotencyKey: 'key-1',
  model: 'fake-job',
  requestText: '{"pages":3}',
  bound: { request: 1, ticks: 20 },
  unit: 'credit',
  maySend: () => true,
};
const question = { idempotencyKey: 'key-1', unit: 'credit' as Unit };
const job = { id: 'job_1', key: 'key-1', status: 'running', cancel: 'none', ticks: 3 };
const stated = { id: 'job_1', key: 'key-1', final: true, usage: { ticks: 5 } };
const charge = { amount: '5', unit: 'credit' };
const html = '<html><body><h1>503</h1></body></html>';

const ownError = (code: string | null = null) => ({
  error: { message: 'No.', type: 'invalid_request_error', code, param: null },
});

const provide = (baseUrl: string) =>
  createMeteredJobsProvider({ name: 'jobs', baseUrl, apiKey: 'secret-credential' });

async function submitTo(reply: Reply) {
  const server = await startHttpServer(reply);
  const { observation } = await provide(server.url).dispatch(request, never());
  return { observation, server };
}

async function statusAt(reply: Reply) {
  const server = await startHttpServer(reply);
  return { observation: await provide(server.url).lookUp(question, never()), server };
}

async function chargeAt(reply: Reply) {
  const server = await startHttpServer(reply);
  const observation = await provide(server.url).lookUpCharge?.(question, never());
  return { observation, server };
}

/** The job is found under its key; what its cancel answers is given. */
async function cancelAt(reply: Reply, found: Reply = { body: job }) {
  const server = await startHttpServer(({ method }) => (method === 'GET' ? found : reply));
  const answer = await provide(server.url).cancel?.(
    { ...question, remoteId: 'stated-by-the-create' },
    never(),
  );
  return { answer, server };
}

describe('submit', () => {
  test('sends the bound as the limit, without our count of requests, under the key', async () => {
    const { observation, server } = await submitTo({ status: 202, body: job });
    expect(observation).toMatchObject({ kind: 'status', status: 'running', remoteId: 'job_1' });
    const [heard] = server.requests;
    expect(heard).toMatchObject({ method: 'POST', path: '/v1/jobs' });
    expect(heard?.headers).toMatchObject({
      ...{ 'idempotency-key': 'key-1', authorization: 'Bearer secret-credential' },
    });
    expect(JSON.parse(heard?.text ?? '')).toEqual({
      ...{ model: 'fake-job', limit: { ticks: 20 }, input: { pages: 3 } },
    });
  });

  test.each([
    ['401 in its own form', { status: 401, body: ownError() }, 'documented_rejection'],
    ['503 in its own form', { status: 503, body: ownError() }, 'documented_rejection'],
  ])('%s was refused before work', async (_, reply, proof) => {
    expect((await submitTo(reply)).observation).toMatchObject({ kind: 'not_accepted', proof });
  });

  test.each([
    ['503 of a proxy', { status: 503, body: html }],
    ['500', { status: 500, body: ownError() }],
    ['404', { status: 404, body: ownError() }],
    ['a body that is no job', { status: 202, body: '<<' }],
  ])('after %s the job may run, and is looked for', async (_, reply) => {
    expect((await submitTo(reply)).observation).toMatchObject({
      ...{ kind: 'no_answer', reason: 'handle_lost' },
    });
  });

  test('to nobody was not sent', async () => {
    const url = `http://127.0.0.1:${await findClosedPort()}`;
    const { observation } = await provide(url).dispatch(request, never());
    expect(observation).toMatchObject({ kind: 'not_accepted', proof: 'no_connection' });
  });

  test('an id that no list could show is not repeated', async () => {
    const { observation } = await submitTo({ status: 202, body: { ...job, id: 'job/\n1' } });
    expect(observation).not.toHaveProperty('remoteId');
  });
});

describe('status', () => {
  test('is asked under the key, whatever id there is', async () => {
    const { observation, server } = await statusAt({ body: { ...job, status: 'cancelled' } });
    expect(observation).toMatchObject({ kind: 'status', status: 'cancelled', remoteId: 'job_1' });
    expect(server.requests[0]?.path).toBe('/v1/jobs/by-key/key-1');
  });

  test.each([
    ['another key', { body: { ...job, key: 'key-2' } }, 'no_answer'],
    ['no job', { body: '<<' }, 'no_answer'],
    ['a status that nobody knows', { body: { ...job, status: 'pausing' } }, 'no_answer'],
    ['404', { status: 404, body: ownError() }, 'not_found'],
    ['503', { status: 503, body: ownError() }, 'no_answer'],
  ])('%s is no answer', async (_, reply, reason) => {
    expect((await statusAt(reply)).observation).toMatchObject({ kind: 'no_answer', reason });
  });

  test('hears when it is to be asked again', async () => {
    const reply = { status: 503, body: ownError(), headers: { 'retry-after': '7' } };
    expect((await statusAt(reply)).observation).toMatchObject({ retryAfterMs: 7_000 });
  });
});

describe('charge', () => {
  test('is final when it says so, and a floor while the job runs', async () => {
    const { observation, server } = await chargeAt({ body: { ...stated, charge } });
    expect(observation).toMatchObject({ kind: 'charge', basis: 'final', amount: 5n });
    expect(server.requests[0]?.path).toBe('/v1/jobs/by-key/key-1/charge');
    const running = await chargeAt({ body: { ...stated, final: false, charge } });
    expect(running.observation).toMatchObject({ kind: 'charge', basis: 'lower_bound', amount: 5n });
  });

  test.each([
    ['no charge yet', { ...stated, charge: null }, 'no_answer'],
    ['a charge without usage', { ...stated, usage: null, charge }, 'no_answer'],
    ['another unit', { ...stated, charge: { amount: '5', unit: 'usd' } }, 'inconsistent_usage'],
    [
      'a negative amount',
      { ...stated, charge: { amount: '-5', unit: 'credit' } },
      'inconsistent_usage',
    ],
    ['another key', { ...stated, key: 'key-2', charge }, 'no_answer'],
    ['no charge at all', { hello: 1 }, 'no_answer'],
  ])('%s settles nothing', async (_, body, reason) => {
    expect((await chargeAt({ body })).observation).toMatchObject({ kind: 'no_answer', reason });
  });
});

describe('cancel', () => {
  test('reaches what is found under the key, and never the id that the create stated', async () => {
    const found = { body: { ...job, id: 'job/\n7' } };
    const { answer, server } = await cancelAt({ status: 202, body: job }, found);
    expect(answer).toMatchObject({ answer: 'acknowledged' });
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /v1/jobs/by-key/key-1',
      'POST /v1/jobs/job%2F%0A7/cancel',
    ]);
  });

  test.each([
    ['200', { status: 200, body: { id: 'job_1', status: 'cancelled' } }, 'acknowledged'],
    ['202', { status: 202, body: job }, 'acknowledged'],
    ['405 in its own form', { status: 405, body: ownError('cancel_unsupported') }, 'unsupported'],
    ['405 of a proxy', { status: 405, body: html }, 'no_answer'],
    ['409 in its own form', { status: 409, body: ownError('not_cancellable') }, 'refused'],
    ['409 of a proxy', { status: 409, body: html }, 'no_answer'],
    ['404', { status: 404, body: ownError() }, 'no_answer'],
    ['503', { status: 503, body: ownError() }, 'no_answer'],
  ])('%s says what became of the asking alone', async (_, reply, answer) => {
    expect((await cancelAt(reply)).answer).toMatchObject({ answer });
  });

  test.each([
    ['nothing is found', { status: 404, body: ownError() }],
    ['the lookup fails', { status: 503, body: ownError() }],
    ['another job is found', { body: { ...job, key: 'key-2' } }],
  ])('is not sent where %s', async (_, found) => {
    const { answer, server } = await cancelAt({ status: 202, body: job }, found);
    expect(answer).toMatchObject({ answer: 'no_answer' });
    expect(server.requests.map(({ method }) => method)).toEqual(['GET']);
  });
});

test('what it can do is graded, and names its source', () => {
  const { capabilities } = provide('http://127.0.0.1:1');
  const { pricedBy, ...claims } = capabilities;
  expect(pricedBy).toBe('provider');
  for (const claim of Object.values<{ grade: string; source: string }>(claims)) {
    expect(claim.grade).toBe('documented');
    expect(claim.source).toMatch(/^metered jobs contract, /);
  }
});
