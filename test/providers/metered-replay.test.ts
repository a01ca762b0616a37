// Asking by replay: the create once more, under its key. What it says is a lookup's word, never a first answer's.

import { expect, describe, test } from 'vitest';
import { createMeteredProvider } from '../../providers/metered/metered-provider.js';
import type { DispatchRequest } from '../../providers/port.js';
import { createSimulator } from '../../simulator/create-simulator.js';
import { findClosedPort, never, startHttpServer, type Reply } from './local-server.js';

const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const charge = { amount: '4', unit: 'credit' };
const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' } }];
const completion = { id: 'chatcmpl-1', choices, usage, charge };
const ownError = {
  error: { message: 'Refused.', type: 'overloaded_error', code: null, param: null },
};
const request: DispatchRequest = {
  idempotencyKey: 'key-1',
  model: 'fake-priced',
  requestText: '{"messages":[{"role":"user","content":"Say something."}],"max_tokens":99}',
  bound: { request: 1, output_tokens: 7 },
  unit: 'credit',
  maySend: () => true,
};

const provide = (baseUrl: string) =>
  createMeteredProvider({ name: 'metered', baseUrl, apiKey: 'secret', asksBy: 'replay' });

async function replayAt(reply: Reply, over: Partial<DispatchRequest> = {}) {
  const server = await startHttpServer(reply);
  const observation = await provide(server.url).replay({ ...request, ...over }, never());
  return { observation, server };
}

test('its capabilities say how it is asked, and for how long a key is known', () => {
  expect(provide('http://127.0.0.1:1').capabilities).toMatchObject({
    lookUpByKey: { value: 'none' },
    replayIsDeduplicated: { value: true, grade: 'documented' },
    dedupeWindowMs: { value: 86_400_000, grade: 'documented' },
    chargeEvidence: { value: ['in_response'] },
  });
  const byLookup = createMeteredProvider({ name: 'm', baseUrl: 'http://x', apiKey: 'k' });
  expect(byLookup.capabilities.lookUpByKey.value).toBe('exact');
});

test('nothing is looked up', async () => {
  const server = await startHttpServer({ body: completion });
  const question = { idempotencyKey: 'key-1', unit: 'credit' } as const;
  expect(await provide(server.url).lookUp(question, never())).toMatchObject({ kind: 'no_answer' });
  expect(server.connectionCount()).toBe(0);
});

test('the request is that of the dispatch, byte for byte', async () => {
  const server = await startHttpServer({ body: completion });
  const provider = provide(server.url);
  await provider.dispatch(request, never());
  await provider.replay(request, never());
  const [first, second] = server.requests;
  expect(second).toMatchObject({ method: 'POST', headers: { 'idempotency-key': 'key-1' } });
  expect([second?.path, second?.text]).toEqual([first?.path, first?.text]);
  expect(JSON.parse(second?.text ?? '')).toMatchObject({ max_tokens: 7 });
});

describe('what it observes', () => {
  const refused = (status: number): [string, Reply, object] => [
    `a ${status} in the own form`,
    { status, body: ownError, headers: { 'retry-after': '7' } },
    { kind: 'no_answer', reason: 'no_answer', detail: `http ${status}`, retryAfterMs: 7_000 },
  ];
  const cases: readonly [string, Reply, object][] = [
    [
      'a stored answer',
      { body: completion, headers: { 'x-request-id': 'req-2' } },
      {
        kind: 'charge',
        basis: 'final',
        amount: 4n,
        usage: { request: 1, input_tokens: 3, output_tokens: 5 },
        remoteId: 'chatcmpl-1',
        evidence: { reference: 'req-2' },
      },
    ],
    [
      'an answer without a charge',
      { body: { ...completion, charge: null } },
      { kind: 'no_answer', reason: 'terminal_without_charge', remoteId: 'chatcmpl-1' },
    ],
    ['an HTML page', { body: '<html></html>' }, { kind: 'no_answer', reason: 'no_answer' }],
    ...[400, 401, 404, 409, 422, 429, 500, 503].map(refused),
  ];

  test.each(cases)('%s', async (_name, reply, expected) => {
    const { observation } = await replayAt(reply);
    expect(observation).toMatchObject(expected);
    expect(observation.evidence.source).toBe('lookup');
  });

  test('a repeat that could not leave proves nothing of the send before it', async () => {
    const port = await findClosedPort();
    const nobody = await provide(`http://127.0.0.1:${port}`).replay(request, never());
    const late = await replayAt({ body: completion }, { maySend: () => false });
    const unwritable = await replayAt({ body: completion }, { requestText: '[]' });
    for (const observation of [nobody, late.observation, unwritable.observation]) {
      expect(observation).toMatchObject({ kind: 'no_answer', evidence: { source: 'transport' } });
    }
    expect(late.server.connectionCount() + unwritable.server.connectionCount()).toBe(0);
  });
});

test('against the simulator: received twice, executed and charged once', async () => {
  const simulator = createSimulator();
  const { url } = await simulator.listen();
  try {
    const provider = provide(url);
    const { observation } = await provider.dispatch(request, never());
    const repeated = await provider.replay(request, never());
    expect(observation).toMatchObject({ kind: 'charge', amount: 7n });
    expect(repeated).toEqual({ ...observation, evidence: repeated.evidence });
    const truth = (await (await fetch(`${url}/truth`)).json()) as { totals: object };
    expect(truth.totals).toMatchObject({ received: 2, accepted: 1, charged: '7' });
  } finally {
    await simulator.close();
  }
});
