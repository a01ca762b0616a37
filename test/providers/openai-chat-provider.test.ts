import { describe, expect, test } from 'vitest';
import { createProvider } from '../../providers/create-provider.js';
import {
  createOpenAiChatProvider,
  type OpenAiChatOptions,
} from '../../providers/openai-chat/openai-chat-provider.js';
import type { DispatchRequest } from '../../providers/port.js';
import { never, settle, startHttpServer, type Reply } from './local-server.js';

const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const exactUsage = { request: 1, input_tokens: 3, output_tokens: 5 };
const choices = [
  { index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' },
];
const completion = { id: 'chatcmpl-1', choices, usage };
const error = { error: { message: 'No.', type: 'invalid_request_error', code: null, param: null } };

const request: DispatchRequest = {
  idempotencyKey: '0123456789abcdef-1',
  model: 'gpt-x',
  requestText: '{"messages":[]}',
  bound: { request: 1, input_tokens: 100, output_tokens: 7 },
  unit: 'usd',
  maySend: () => true,
};

async function dispatchTo(
  reply: Reply,
  options: Partial<OpenAiChatOptions> = {},
  over: Partial<DispatchRequest> = {},
) {
  const server = await startHttpServer(reply);
  const provider = createOpenAiChatProvider({ name: 'x', baseUrl: `${server.url}/v1`, ...options });
  const dispatched = await provider.dispatch({ ...request, ...over }, never());
  await settle();
  expect(server.connectionCount()).toBe(1);
  const [heard] = server.requests;
  return { ...dispatched, heard, wire: JSON.parse(heard?.text ?? '{}') as Record<string, unknown> };
}

describe('a whole answer', () => {
  test('states usage for the price book and no amount', async () => {
    const { kind, observation, answer, heard, wire } = await dispatchTo(
      { body: completion },
      { apiKey: 'secret' },
    );
    expect(kind).toBe('observed');
    expect(observation).toMatchObject({
      kind: 'charge',
      basis: 'final',
      usage: exactUsage,
      remoteId: 'chatcmpl-1',
    });
    expect(observation).not.toHaveProperty('amount');
    expect(answer).toEqual({ text: JSON.stringify(completion) });
    expect(heard).toMatchObject({
      path: '/v1/chat/completions',
      headers: {
        authorization: 'Bearer secret',
        'idempotency-key': request.idempotencyKey,
        'x-client-request-id': request.idempotencyKey,
      },
    });
    expect(wire).toEqual({ messages: [], model: 'gpt-x', max_tokens: 7 });
  });

  test('is asked for with the header and the limit that the server knows', async () => {
    const { heard, wire } = await dispatchTo(
      { body: completion },
      { apiKey: 'secret', keyHeader: 'Api-Key', limitField: 'max_completion_tokens' },
      { requestText: '{"messages":[],"max_tokens":900}' },
    );
    expect(heard?.headers).toMatchObject({ 'api-key': 'secret' });
    expect(heard?.headers.authorization).toBeUndefined();
    expect(wire).toEqual({ messages: [], model: 'gpt-x', max_completion_tokens: 7 });
  });

  test.each([
    ['missing', undefined, 'terminal_without_charge'],
    ['null', null, 'terminal_without_charge'],
    ['zero', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, 'inconsistent_usage'],
    ['contradictory', { ...usage, total_tokens: 7 }, 'inconsistent_usage'],
  ])('with %s usage is handed on and no charge', async (_name, stated, reason) => {
    const { observation, answer } = await dispatchTo({ body: { ...completion, usage: stated } });
    expect(observation).toMatchObject({ kind: 'no_answer', reason });
    expect(answer).toBeDefined();
  });

  test('an impossible bound is a bug and nothing is sent', async () => {
    const server = await startHttpServer({ body: completion });
    const provider = createOpenAiChatProvider({ name: 'x', baseUrl: server.url });
    const wrong = { ...request, bound: { output_tokens: 0.5 } };
    await expect(provider.dispatch(wrong, never())).rejects.toThrow(RangeError);
    expect(server.connectionCount()).toBe(0);
  });
});

describe('a streamed answer', () => {
  const chunk = (over: object = {}) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta: { content: 'hi' } }], usage: null, ...over })}\n\n`;
  const last = chunk({ choices: [], usage });
  const done = 'data: [DONE]\n\n';
  const streamed = (body: string): Promise<Awaited<ReturnType<typeof dispatchTo>>> =>
    dispatchTo(
      { headers: { 'content-type': 'text/event-stream; charset=utf-8' }, body },
      {},
      { requestText: '{"messages":[],"stream":true,"stream_options":{"include_usage":false}}' },
    );

  test('is asked for with its usage, read to the end and handed on whole', async () => {
    const body = `: ping\n\n${chunk()}${chunk()}${last}${done}`;
    const { observation, answer, wire } = await streamed(body);
    expect(wire).toMatchObject({ stream: true, stream_options: { include_usage: true } });
    expect(observation).toMatchObject({
      kind: 'charge',
      usage: exactUsage,
      remoteId: 'chatcmpl-1',
    });
    expect(answer).toEqual({ text: body });
  });

  test('counts the last usage of a server that counts along', async () => {
    const first = chunk({ usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } });
    const { observation } = await streamed(`${first}${last}${done}`.replaceAll('\n', '\r\n'));
    expect(observation).toMatchObject({ kind: 'charge', usage: exactUsage });
  });

  test.each([
    ['ends without its closing mark', chunk() + last, 'no_answer'],
    ['is cut in a chunk', (chunk() + last).slice(0, -20), 'no_answer'],
    ['is empty', '', 'no_answer'],
    ['is nothing but its closing mark', done, 'no_answer'],
    ['carries an error', `${chunk()}data: ${JSON.stringify(error)}\n\n${done}`, 'no_answer'],
    ['is complete without usage', chunk() + chunk() + done, 'terminal_without_charge'],
    [
      'is complete with wrong usage',
      chunk({ usage: { ...usage, total_tokens: 1 } }) + done,
      'inconsistent_usage',
    ],
  ])('that %s is no charge', async (_name, body, reason) => {
    const { observation } = await streamed(body);
    expect(observation).toMatchObject({ kind: 'no_answer', reason });
  });
});

describe('a refusal', () => {
  const statuses = [400, 401, 403, 404, 413, 429];

  test.each(statuses)('with %i by the vendor itself frees the hold', async (status) => {
    const { observation } = await dispatchTo({ status, body: error }, { direct: true });
    expect(observation).toMatchObject({ kind: 'not_accepted', proof: 'documented_rejection' });
  });

  test.each(statuses)('with %i by what may be a gateway proves nothing', async (status) => {
    const { observation } = await dispatchTo({ status, body: error });
    expect(observation).toMatchObject({ kind: 'no_answer', reason: 'no_answer' });
  });

  test.each<[string, number, object | string]>([
    ['a 400 of a proxy', 400, '<html></html>'],
    ['a 429 in another form', 429, { message: 'slow down' }],
    ['a 400 that also states usage', 400, { ...error, usage }],
    ['a 402', 402, error],
    ['a 408', 408, error],
    ['a 409', 409, error],
    ['a 422', 422, error],
    ['a 500', 500, error],
    ['a 503', 503, error],
  ])('%s by the vendor itself proves nothing', async (_name, status, body) => {
    const { observation } = await dispatchTo({ status, body }, { direct: true });
    expect(observation).toMatchObject({ kind: 'no_answer', reason: 'no_answer' });
  });
});

test('a lookup asks nobody and says so', async () => {
  const server = await startHttpServer({ body: {} });
  const provider = createProvider({ kind: 'openai_chat', name: 'x', baseUrl: server.url });
  expect(await provider.lookUp({ idempotencyKey: 'k', unit: 'usd' }, never())).toMatchObject({
    kind: 'no_answer',
    detail: 'chat completions cannot be looked up by key',
  });
  expect(provider.capabilities.lookUpByKey.value).toBe('none');
  expect(server.connectionCount()).toBe(0);
});

test('a provider is made by its kind', () => {
  const options = { name: 'a', baseUrl: 'http://127.0.0.1', apiKey: 'k' };
  expect(createProvider({ kind: 'metered', ...options }).capabilities.pricedBy).toBe('provider');
  expect(createProvider({ kind: 'openai_chat', ...options }).capabilities.pricedBy).toBe(
    'price_book',
  );
});
