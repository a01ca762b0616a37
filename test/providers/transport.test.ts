import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createTransport, type HttpRequest } from '../../providers/transport.js';
import { createCertificate } from './certificate.js';
import { findClosedPort, never, settle, startHttpServer, startTcpServer } from './local-server.js';

const always = { maySend: () => true };
const transport = createTransport();

const post = (url: string): HttpRequest => ({
  method: 'POST',
  url: new URL('/v1/chat/completions?a=1', url),
  headers: { authorization: 'Bearer secret-credential', 'idempotency-key': 'key-1' },
  body: '{"text":"secret-prompt"}',
});

const send = (url: string, signal = never()) => transport.send(post(url), always, signal);

/** Answers each request once it has come, or never if there is nothing to say. */
const answering =
  (...parts: readonly string[]) =>
  (socket: Socket): void => {
    socket.once('data', () => {
      for (const part of parts) {
        if (part === 'reset') setTimeout(() => socket.resetAndDestroy(), 20);
        else if (part === 'end') socket.end();
        else socket.write(part);
      }
    });
  };

/** Accepts, and ends the connection without having read from it. */
const unread =
  (how: 'reset' | 'end') =>
  (socket: Socket): void => {
    socket.pause();
    setTimeout(() => (how === 'reset' ? socket.resetAndDestroy() : socket.destroy()), 30);
  };

describe('an answer', () => {
  test('comes with its status, its headers and its text, over one connection that is not kept', async () => {
    const server = await startHttpServer({
      headers: { 'X-Request-Id': 'req-1', 'set-cookie': ['a', 'b'] },
      body: { said: 'grüezi' },
    });
    const answer = await send(server.url);
    expect(answer).toMatchObject({
      kind: 'response',
      status: 200,
      headers: { 'x-request-id': 'req-1', 'set-cookie': 'a, b', connection: 'close' },
      text: '{"said":"grüezi"}',
    });
    expect(server.requests).toMatchObject([
      {
        method: 'POST',
        path: '/v1/chat/completions?a=1',
        headers: { 'idempotency-key': 'key-1', connection: 'close', 'content-length': '24' },
        text: '{"text":"secret-prompt"}',
      },
    ]);
  });

  test('uses a new connection for every send', async () => {
    const server = await startHttpServer({ body: {} });
    await send(server.url);
    await send(server.url);
    expect(server.connectionCount()).toBe(2);
  });

  test.each([302, 307, 429, 500, 503])(
    'of status %i is handed back and not followed or repeated',
    async (status) => {
      const server = await startHttpServer({
        status,
        headers: { location: '/elsewhere', 'retry-after': '0' },
        body: {},
      });
      expect(await send(server.url)).toMatchObject({ kind: 'response', status });
      await settle();
      expect(server.requests).toHaveLength(1);
      expect(server.connectionCount()).toBe(1);
    },
  );

  test('over TLS comes from the server whose certificate is trusted', async () => {
    const certificate = createCertificate('127.0.0.1');
    const server = await startTcpServer(
      answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'),
      certificate,
    );
    const trusting = createTransport({ ca: certificate.cert });
    expect(await trusting.send(post(server.url), always, never())).toMatchObject({
      kind: 'response',
      text: 'ok',
    });
    expect(server.receivedText()).toContain('secret-prompt');
  });
});

describe('no byte has left', () => {
  test('a refused connection is not sent', async () => {
    const port = await findClosedPort();
    expect(await send(`http://127.0.0.1:${port}`)).toEqual({
      kind: 'not_sent',
      reason: 'no_connection',
      detail: 'ECONNREFUSED',
    });
  });

  test('a name that does not resolve is not sent', async () => {
    const answer = await send('http://nobody.invalid');
    expect(answer).toMatchObject({ kind: 'not_sent', reason: 'no_connection' });
  });

  test('a failed TLS handshake is not sent', async () => {
    const server = await startTcpServer(answering('HTTP/1.1 400 Bad Request\r\n\r\n', 'end'));
    const answer = await send(server.url.replace('http:', 'https:'));
    expect(answer).toMatchObject({ kind: 'not_sent', reason: 'no_connection' });
    expect(server.connectionCount()).toBe(1);
    expect(server.receivedText()).not.toContain('secret');
  });

  test.each([
    ['that nobody vouches for', '127.0.0.1', false],
    ['for another address', '10.0.0.1', true],
  ])('a certificate %s is not sent to', async (_name, address, isTrusted) => {
    const certificate = createCertificate(address);
    const server = await startTcpServer(() => undefined, certificate);
    const strict = createTransport(isTrusted ? { ca: certificate.cert } : {});
    const answer = await strict.send(post(server.url), always, never());
    expect(answer).toMatchObject({ kind: 'not_sent', reason: 'no_connection' });
    expect(server.receivedText()).toBe('');
  });

  test('a handshake that hangs is not sent when the connect timeout ends', async () => {
    const server = await startTcpServer(() => undefined);
    const hasty = createTransport({ connectTimeoutMs: 50 });
    const secure = post(server.url.replace('http:', 'https:'));
    expect(await hasty.send(secure, always, never())).toEqual({
      kind: 'not_sent',
      reason: 'no_connection',
      detail: 'no connection within 50 ms',
    });
  });

  test('an abort while connecting is not sent', async () => {
    const server = await startTcpServer(() => undefined);
    const secure = server.url.replace('http:', 'https:');
    expect(await send(secure, AbortSignal.timeout(50))).toMatchObject({
      kind: 'not_sent',
      detail: 'aborted',
    });
    expect(await send(server.url, AbortSignal.abort())).toMatchObject({
      kind: 'not_sent',
      detail: 'aborted',
    });
  });

  test('a right that lapsed before connecting opens no connection', async () => {
    const server = await startTcpServer(() => undefined);
    const answer = await transport.send(post(server.url), { maySend: () => false }, never());
    expect(answer).toMatchObject({ kind: 'not_sent', reason: 'late' });
    await settle();
    expect(server.connectionCount()).toBe(0);
  });

  test('a right that lapsed between connecting and the first byte sends no byte', async () => {
    const server = await startTcpServer(() => undefined);
    const answers = [true, false];
    const guard = { maySend: () => answers.shift() ?? true };
    const answer = await transport.send(post(server.url), guard, never());
    expect(answer).toMatchObject({ kind: 'not_sent', reason: 'late' });
    await settle();
    expect(answers).toEqual([]);
    expect(server.connectionCount()).toBe(1);
    expect(server.receivedText()).toBe('');
  });

  test('a header that cannot be written is not sent', async () => {
    const server = await startTcpServer(() => undefined);
    const request = { ...post(server.url), headers: { 'idempotency-key': 'a\r\nb: c' } };
    const answer = await transport.send(request, always, never());
    expect(answer).toMatchObject({ kind: 'not_sent', reason: 'no_connection' });
    await settle();
    expect(server.receivedText()).toBe('');
  });
});

describe('bytes may have left', () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
  const broken: readonly [string, (socket: Socket) => void, object][] = [
    ['a connection reset before the request is read', unread('reset'), {}],
    ['a connection closed before the request is read', unread('end'), {}],
    ['a connection reset after the request was read', answering('reset'), {}],
    ['a connection closed after the request was read', answering('end'), {}],
    ['a head cut short', answering(head, 'end'), {}],
    ['text that is no HTTP', answering('220 mail.example ESMTP\r\n', 'end'), {}],
    [
      'a body cut short',
      answering(`${head}content-length: 99\r\n\r\n{"id"`, 'end'),
      { partial: { status: 200 } },
    ],
    [
      'a body that is reset',
      answering(`${head}content-length: 99\r\n\r\n{"id"`, 'reset'),
      { partial: { status: 200 } },
    ],
    [
      'a chunked body without its end',
      answering(`${head}transfer-encoding: chunked\r\n\r\n4\r\n{"id\r\n`, 'end'),
      { partial: { status: 200 } },
    ],
  ];

  test.each(broken)('%s is lost, after one connection', async (_name, onConnection, partial) => {
    const server = await startTcpServer(onConnection);
    const answer = await send(server.url);
    expect(answer).toMatchObject({ kind: 'lost', ...partial });
    await settle();
    expect(server.connectionCount()).toBe(1);
    expect(JSON.stringify(answer)).not.toMatch(/secret|127\.0\.0\.1/);
  });

  test('a signal that ends the waiting loses the answer', async () => {
    const server = await startTcpServer(() => undefined);
    expect(await send(server.url, AbortSignal.timeout(100))).toEqual({
      kind: 'lost',
      detail: 'no complete answer in time',
    });
    expect(server.receivedText()).toContain('secret-prompt');
    expect(server.connectionCount()).toBe(1);
  });

  test('a signal that ends in the middle of the body loses the answer', async () => {
    const server = await startTcpServer(answering(`${head}content-length: 99\r\n\r\n{"id"`));
    expect(await send(server.url, AbortSignal.timeout(100))).toEqual({
      kind: 'lost',
      detail: 'no complete answer in time',
      partial: { status: 200 },
    });
  });

  test('an answer above the cap is lost', async () => {
    const server = await startHttpServer({ body: 'x'.repeat(2000) });
    const small = createTransport({ answerByteCountMax: 1999 });
    expect(await small.send(post(server.url), always, never())).toEqual({
      kind: 'lost',
      detail: 'AnswerTooLarge',
      partial: { status: 200 },
    });
    const enough = createTransport({ answerByteCountMax: 2000 });
    expect(await enough.send(post(server.url), always, never())).toMatchObject({
      kind: 'response',
    });
  });

  test('an answer that is no UTF-8 is lost', async () => {
    const server = await startHttpServer({ body: Buffer.from([0x1f, 0x8b, 0x08, 0x00]) });
    expect(await send(server.url)).toMatchObject({ kind: 'lost', partial: { status: 200 } });
  });

  test('the right to send is not asked again once the request has left', async () => {
    const server = await startHttpServer({ body: {} });
    let askedCount = 0;
    const guard = {
      maySend: () => {
        askedCount += 1;
        return true;
      },
    };
    await transport.send(post(server.url), guard, never());
    expect(askedCount).toBe(2);
  });
});

describe('a question', () => {
  const get = (url: string): HttpRequest => ({ method: 'GET', url: new URL(url), headers: {} });

  test('is answered like a send', async () => {
    const server = await startHttpServer({ status: 404, body: {} });
    expect(await transport.ask(get(server.url), never())).toMatchObject({
      kind: 'response',
      status: 404,
    });
    expect(server.requests).toHaveLength(1);
  });

  test('that cannot be asked is lost and proves nothing', async () => {
    const port = await findClosedPort();
    expect(await transport.ask(get(`http://127.0.0.1:${port}`), never())).toEqual({
      kind: 'lost',
      detail: 'ECONNREFUSED',
    });
  });
});
