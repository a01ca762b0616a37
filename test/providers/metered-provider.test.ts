import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Unit } from '../../domain/money.js';
import { createMeteredProvider } from '../../providers/metered/metered-provider.js';
import { createSimulator } from '../../simulator/create-simulator.js';
import type { DispatchRequest } from '../../providers/port.js';
import { findClosedPort, never, settle, startHttpServer, type Reply } from './local-server.js';

const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const exactUsage = { request: 1, input_tokens: 3, output_tokens: 5 };
const charge = { amount: '4', unit: 'credit' };
const choices = [
  { index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' },
];
const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'm',
  choices,
  usage,
  charge,
};
const receipt = { id: 'chatcmpl-1', key: 'key-1', status: 'completed', model: 'm', usage, charge };
const ownError = {
  error: { message: 'Refused.', type: 'overloaded_error', code: null, param: null },
};
const html = '<html><body><h1>503</h1></body></html>';

const request: DispatchRequest = {
  idempotencyKey: 'key-1',
  model: 'fake-priced',
  requestText: '{"messages":[{"role":"user","content":"Say something."}]}',
  bound: { request: 1, output_tokens: 7 },
  unit: 'credit',
  maySend: () => true,
};
const question = { idempotencyKey: 'key-1', unit: 'credit' as Unit };

const provide = (baseUrl: string) =>
  createMeteredProvider({ name: 'metered', baseUrl, apiKey: 'secret-credential' });

async function dispatchTo(reply: Reply, over: Partial<DispatchRequest> = {}) {
  const server = await startHttpServer(reply);
  const dispatched = await provide(server.url).dispatch({ ...request, ...over }, never());
  await settle();
  expect(server.connectionCount()).toBe(1);
  return { ...dispatched, server };
}

async function lookUpAt(reply: Reply) {
  const server = await startHttpServer(reply);
  const observation = await provide(server.url).lookUp(question, never());
  expect(server.connectionCount()).toBe(1);
  return { observation, server };
}

describe('dispatch', () => {
  test('a completion with its charge and exact usage is a final charge', async () => {
    const { kind, observation, answer, server } = await dispatchTo({
      headers: { 'x-request-id': 'req-1' },
      body: completion,
    });
    const text = JSON.stringify(completion);
    expect({ kind, observation, answer }).toEqual({
      kind: 'observed',
      observation: {
        kind: 'charge',
        basis: 'final',
        amount: 4n,
        usage: exactUsage,
        execution: 'completed',
        remoteId: 'chatcmpl-1',
        evidence: {
          source: 'response',
          reference: 'req-1',
          digest: createHash('sha256').update(text).digest('hex'),
          status: '200',
        },
      },
      answer: { text },
    });
    expect(server.requests[0]).toMatchObject({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { authorization: 'Bearer secret-credential', 'idempotency-key': 'key-1' },
    });
    expect(JSON.parse(server.requests[0]?.text ?? '')).toEqual({
      messages: [{ role: 'user', content: 'Say something.' }],
      model: 'fake-priced',
      max_tokens: 7,
    });
  });

  test('the bound is the limit on the wire whatever the text of the caller says', async () => {
    const { server } = await dispatchTo(
      { body: completion },
      {
        requestText: `{"model":"dear","max_tokens":99,"max_completion_tokens":99,"n":9,"best_of":9,
          "Max_Tokens":99,"max_to\u212aens":99,"N":9,"MODEL":"dear","service_tier":"priority",
          "max_tokens":98,"messages":[],"temperature":0.5}`,
      },
    );
    expect(JSON.parse(server.requests[0]?.text ?? '')).toEqual({
      messages: [],
      temperature: 0.5,
      model: 'fake-priced',
      max_tokens: 7,
    });
  });

  test('without a bound for output no limit is made up', async () => {
    const { server } = await dispatchTo({ body: completion }, { bound: { request: 1 } });
    expect(JSON.parse(server.requests[0]?.text ?? '')).not.toHaveProperty('max_tokens');
  });

  test.each(['not json', '[]', '"text"', 'null'])(
    'the text %s is not sent',
    async (requestText) => {
      const server = await startHttpServer({ body: completion });
      const dispatched = await provide(server.url).dispatch({ ...request, requestText }, never());
      expect(dispatched.observation).toMatchObject({
        kind: 'not_accepted',
        proof: 'no_connection',
      });
      expect(server.connectionCount()).toBe(0);
    },
  );

  const settlesNothing: readonly [string, object, string][] = [
    ['usage is missing', { usage: undefined }, 'terminal_without_charge'],
    ['usage is null', { usage: null }, 'terminal_without_charge'],
    [
      'a count is null',
      { usage: { ...usage, completion_tokens: null } },
      'terminal_without_charge',
    ],
    [
      'a count is missing',
      { usage: { ...usage, total_tokens: undefined } },
      'terminal_without_charge',
    ],
    [
      'a count is negative',
      { usage: { prompt_tokens: 3, completion_tokens: -1, total_tokens: 2 } },
      'inconsistent_usage',
    ],
    [
      'a count is a fraction',
      { usage: { prompt_tokens: 3, completion_tokens: 0.5, total_tokens: 3.5 } },
      'inconsistent_usage',
    ],
    ['a count is text', { usage: { ...usage, prompt_tokens: '3' } }, 'inconsistent_usage'],
    ['the counts do not add up', { usage: { ...usage, total_tokens: 9 } }, 'inconsistent_usage'],
    ['usage is no object', { usage: 8 }, 'inconsistent_usage'],
    ['the charge is missing', { charge: undefined }, 'terminal_without_charge'],
    ['the charge is null', { charge: null }, 'terminal_without_charge'],
    [
      'the charge is in another unit',
      { charge: { amount: '4', unit: 'usd' } },
      'inconsistent_usage',
    ],
    ['the charge is negative', { charge: { amount: '-4', unit: 'credit' } }, 'inconsistent_usage'],
    [
      'the charge has a fraction',
      { charge: { amount: '4.5', unit: 'credit' } },
      'inconsistent_usage',
    ],
    ['the charge is a number', { charge: { amount: 4, unit: 'credit' } }, 'inconsistent_usage'],
  ];

  test.each(settlesNothing)(
    'where %s the answer is handed on and no charge',
    async (_name, over, reason) => {
      const body = { ...completion, ...over };
      const { observation, answer } = await dispatchTo({ body });
      expect(observation).toMatchObject({ kind: 'no_answer', reason, remoteId: 'chatcmpl-1' });
      expect(answer).toEqual({ text: JSON.stringify(body) });
    },
  );

  test('an answer without an id is a charge without one', async () => {
    const { observation } = await dispatchTo({ body: { ...completion, id: undefined } });
    expect(observation).toMatchObject({ kind: 'charge', evidence: { reference: 'http 200' } });
    expect(observation).not.toHaveProperty('remoteId');
  });

  test.each([401, 503])('a %i in the own form is a documented rejection', async (status) => {
    const { observation, answer } = await dispatchTo({ status, body: ownError });
    expect(observation).toMatchObject({
      kind: 'not_accepted',
      proof: 'documented_rejection',
      evidence: { source: 'response', status: String(status) },
    });
    expect(answer).toBeUndefined();
  });

  const unclear: readonly [string, Reply][] = [
    ['a 401 of a proxy', { status: 401, body: html, headers: { 'content-type': 'text/html' } }],
    ['a 503 of a proxy', { status: 503, body: html, headers: { 'content-type': 'text/html' } }],
    ['a 503 in another JSON form', { status: 503, body: { message: 'busy' } }],
    ['a 503 with an incomplete form', { status: 503, body: { error: { message: 'busy' } } }],
    ['a 503 that also states a charge', { status: 503, body: { ...ownError, charge } }],
    ['a 503 without a body', { status: 503, body: '' }],
    ...[201, 202, 302, 400, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 504].map(
      (status): [string, Reply] => [`a ${status}`, { status, body: ownError }],
    ),
    ['an HTML page', { body: html }],
    ['truncated JSON', { body: JSON.stringify(completion).slice(0, 60) }],
    ['an error with status 200', { body: ownError }],
    ['a completion that also states an error', { body: { ...completion, ...ownError } }],
    ['an empty body', { body: '' }],
  ];

  test.each(unclear)('%s is no answer', async (_name, reply) => {
    const { kind, observation, answer } = await dispatchTo(reply);
    expect(kind).toBe('observed');
    expect(observation).toMatchObject({ kind: 'no_answer', reason: 'no_answer' });
    expect(answer).toBeUndefined();
  });

  test('Retry-After is handed on', async () => {
    const { observation } = await dispatchTo({
      status: 429,
      headers: { 'retry-after': '7' },
      body: ownError,
    });
    expect(observation).toMatchObject({ kind: 'no_answer', retryAfterMs: 7000 });
  });

  test('a refused connection proves that nothing was charged', async () => {
    const port = await findClosedPort();
    const dispatched = await provide(`http://127.0.0.1:${port}`).dispatch(request, never());
    expect(dispatched).toMatchObject({
      kind: 'observed',
      observation: { kind: 'not_accepted', proof: 'no_connection', detail: 'ECONNREFUSED' },
    });
  });

  test('a lapsed right is late', async () => {
    const server = await startHttpServer({ body: completion });
    const late = { ...request, maySend: () => false };
    expect(await provide(server.url).dispatch(late, never())).toMatchObject({
      kind: 'late',
      observation: { kind: 'not_accepted', proof: 'no_connection' },
    });
    expect(server.connectionCount()).toBe(0);
  });
});

describe('look up', () => {
  const found = (over: object): Reply => ({ body: { ...receipt, ...over } });
  const cases: readonly [string, Reply, object][] = [
    [
      'a receipt with charge and usage',
      found({}),
      { kind: 'charge', basis: 'final', amount: 4n, usage: exactUsage, remoteId: 'chatcmpl-1' },
    ],
    [
      'a failed receipt with charge and usage',
      found({ status: 'failed' }),
      { kind: 'charge', amount: 4n },
    ],
    [
      'a running receipt',
      found({ status: 'running', usage: null, charge: null }),
      { kind: 'status', status: 'running', remoteId: 'chatcmpl-1' },
    ],
    [
      'a running receipt with a charge',
      found({ status: 'running' }),
      { kind: 'status', status: 'running' },
    ],
    [
      'a completed receipt without charge',
      found({ charge: undefined }),
      { kind: 'status', status: 'completed' },
    ],
    [
      'a completed receipt without usage',
      found({ usage: null }),
      { kind: 'status', status: 'completed' },
    ],
    [
      'a failed receipt without charge',
      found({ status: 'failed', charge: null }),
      { kind: 'status', status: 'failed' },
    ],
    [
      'a receipt that does not add up',
      found({ usage: { ...usage, total_tokens: 1 } }),
      { kind: 'no_answer', reason: 'inconsistent_usage' },
    ],
    [
      'a receipt of another key',
      found({ key: 'key-2' }),
      { kind: 'no_answer', reason: 'no_answer' },
    ],
    [
      'a receipt with an unheard-of status',
      found({ status: 'paused' }),
      { kind: 'no_answer', reason: 'no_answer' },
    ],
    ['an HTML page', { body: html }, { kind: 'no_answer', reason: 'no_answer' }],
    ['a 404', { status: 404, body: ownError }, { kind: 'no_answer', reason: 'not_found' }],
    ...[401, 429, 500, 503].map((status): [string, Reply, object] => [
      `a ${status} in the own form`,
      { status, body: ownError },
      { kind: 'no_answer', reason: 'no_answer' },
    ]),
  ];

  test.each(cases)('%s is observed as such', async (_name, reply, expected) => {
    const { observation } = await lookUpAt(reply);
    expect(observation).toMatchObject({ ...expected, evidence: { source: 'lookup' } });
  });

  test('asks by the key as it was given', async () => {
    const server = await startHttpServer(found({ key: 'a/b c' }));
    const asked = { ...question, idempotencyKey: 'a/b c' };
    expect(await provide(`${server.url}/base/`).lookUp(asked, never())).toMatchObject({
      kind: 'charge',
    });
    expect(server.requests).toMatchObject([
      { method: 'GET', path: '/base/v1/receipts/by-key/a%2Fb%20c' },
    ]);
  });

  const waits: readonly [string, string, number | undefined][] = [
    ['seconds', '30', 30_000],
    ['a day and more', '999999999', 86_400_000],
    ['a date that has passed', 'Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['a date that is far away', 'Fri, 01 Jan 2100 00:00:00 GMT', 86_400_000],
    ['nonsense', 'soon', undefined],
  ];

  test.each(waits)('Retry-After as %s is read with a cap', async (_name, text, retryAfterMs) => {
    const { observation } = await lookUpAt({
      status: 503,
      headers: { 'retry-after': text },
      body: ownError,
    });
    if (observation.kind !== 'no_answer') throw new RangeError(observation.kind);
    expect(observation.retryAfterMs).toBe(retryAfterMs);
  });

  test('a question that nobody answers proves nothing', async () => {
    const port = await findClosedPort();
    expect(await provide(`http://127.0.0.1:${port}`).lookUp(question, never())).toMatchObject({
      kind: 'no_answer',
      reason: 'no_answer',
      evidence: { source: 'transport' },
    });
  });
});

describe('against the simulator', () => {
  test.each([false, true])(
    'a call with stream %s is charged once and its receipt says the same',
    async (stream) => {
      const simulator = createSimulator();
      const { url } = await simulator.listen();
      try {
        const requestText = JSON.stringify({ ...JSON.parse(request.requestText), stream });
        const provider = provide(url);
        const { observation } = await provider.dispatch({ ...request, requestText }, never());
        const looked = await provider.lookUp(question, never());
        expect(observation).toMatchObject({
          kind: 'charge',
          usage: { request: 1, output_tokens: 7 },
        });
        expect(looked).toEqual({ ...observation, evidence: looked.evidence });
      } finally {
        await simulator.close();
      }
    },
  );
});
