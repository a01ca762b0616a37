// Transport
// ---------
// One HTTP exchange over one new connection. It never tries again, follows nothing and reuses nothing,
// so that what it says of a request holds for every byte of it.
//
// Invariants:
//   T1. `not_sent` means that not one byte of the request can have left.
//   T2. Once the open socket was handed over for writing, whatever goes wrong is `lost`.
//   T3. The right to send is asked before connecting and again with the open socket in hand.
//   T4. A detail names what happened; it never carries an address, a header or a body.

import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { nameError, openConnection } from './connection.js';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface SendGuard {
  readonly maySend: () => boolean;
}

export interface HttpResponse {
  readonly kind: 'response';
  readonly status: number;
  /** Names in lower case; a repeated header is joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface NotSent {
  readonly kind: 'not_sent';
  readonly reason: 'no_connection' | 'late';
  readonly detail: string;
}

export interface Lost {
  readonly kind: 'lost';
  readonly detail: string;
  /** What had been heard before the answer broke off. */
  readonly partial?: { readonly status: number };
}

export interface Transport {
  /** `signal` ends the waiting; it cannot take back what has left. */
  send(
    request: HttpRequest,
    guard: SendGuard,
    signal: AbortSignal,
  ): Promise<HttpResponse | NotSent | Lost>;
  /** For questions, which cost nothing: whatever goes wrong is `lost`. */
  ask(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse | Lost>;
}

export interface TransportOptions {
  readonly connectTimeoutMs?: number;
  readonly answerByteCountMax?: number;
  readonly ca?: string;
}

const CONNECT_TIMEOUT_MS = 5_000;
const ANSWER_BYTE_COUNT_MAX = 16 * 1024 * 1024;
const LATE: NotSent = {
  kind: 'not_sent',
  reason: 'late',
  detail: 'the right to send had lapsed before the first byte',
};
const ALWAYS: SendGuard = { maySend: () => true };

export function createTransport(options: TransportOptions = {}): Transport {
  const {
    connectTimeoutMs = CONNECT_TIMEOUT_MS,
    answerByteCountMax = ANSWER_BYTE_COUNT_MAX,
    ca,
  } = options;
  const connectionOptions = { connectTimeoutMs, ...(ca !== undefined && { ca }) };

  const send: Transport['send'] = async (request, guard, signal) => {
    if (!guard.maySend()) return LATE;
    const connection = await openConnection(request.url, connectionOptions, signal);
    if (connection.status === 'failed') return noConnection(connection.detail);
    return exchange({ socket: connection.socket, request, guard, signal, answerByteCountMax });
  };

  return {
    send,
    async ask(request, signal) {
      const answer = await send(request, ALWAYS, signal);
      return answer.kind === 'not_sent' ? { kind: 'lost', detail: answer.detail } : answer;
    },
  };
}

function noConnection(detail: string): NotSent {
  return { kind: 'not_sent', reason: 'no_connection', detail };
}

interface Exchange {
  readonly socket: Socket;
  readonly request: HttpRequest;
  readonly guard: SendGuard;
  readonly signal: AbortSignal;
  readonly answerByteCountMax: number;
}

async function exchange(given: Exchange): Promise<HttpResponse | NotSent | Lost> {
  const { socket, request, signal, answerByteCountMax } = given;
  const handOver = createHandOver(given);
  const client = openClient(request.url, handOver.take);
  const giveUp = (): void => {
    void client.destroy();
  };
  let status: number | undefined;
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const answer = await client.request({
      method: request.method,
      path: `${request.url.pathname}${request.url.search}`,
      headers: { ...request.headers, 'accept-encoding': 'identity' },
      body: request.body ?? null,
    });
    status = answer.statusCode;
    const text = decodeText(await readBytes(answer, answerByteCountMax));
    return { kind: 'response', status, headers: flattenHeaders(answer.headers), text };
  } catch (error) {
    const refusal = handOver.refusal();
    if (refusal !== undefined) return refusal;
    const detail = signal.aborted ? 'no complete answer in time' : nameError(error);
    return { kind: 'lost', detail, ...(status !== undefined && { partial: { status } }) };
  } finally {
    signal.removeEventListener('abort', giveUp);
    // Some answers end while the server keeps the connection; nothing waits for it.
    socket.on('error', () => undefined).destroy();
    await client.destroy();
  }
}

interface HandOver {
  /** The socket, once. The client would open a second connection and write the request again. */
  readonly take: () => Socket;
  /** Why nothing was handed over, or undefined once the socket has been. */
  readonly refusal: () => NotSent | undefined;
}

function createHandOver({ socket, guard, signal }: Exchange): HandOver {
  // Stands where the client refuses the request itself and never asks for the socket.
  let refusal: NotSent | undefined = noConnection('the request could not be written');
  return {
    take() {
      if (refusal === undefined) throw new Error('one request has one connection');
      if (signal.aborted) refusal = noConnection('aborted');
      else if (socket.destroyed) refusal = noConnection('closed before the first byte');
      else refusal = guard.maySend() ? undefined : LATE;
      if (refusal !== undefined) throw new Error(refusal.detail);
      return socket;
    },
    refusal: () => refusal,
  };
}

/** Its own time limits are off: the signal is the one that decides. */
function openClient(url: URL, takeSocket: () => Socket): Client {
  return new Client(url.origin, {
    pipelining: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
    // The client goes on by itself only from a callback that comes after its own turn.
    connect: (_address, callback) => {
      queueMicrotask(() => {
        let socket: Socket;
        try {
          socket = takeSocket();
        } catch (error) {
          callback(error instanceof Error ? error : new Error('no socket'), null);
          return;
        }
        callback(null, socket);
      });
    },
  });
}

async function readBytes({ body }: Dispatcher.ResponseData, byteCountMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let byteCount = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    byteCount += chunk.byteLength;
    if (byteCount > byteCountMax) throw new AnswerTooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** Throws TypeError for anything but UTF-8, such as an answer that was compressed unasked. */
function decodeText(bytes: Buffer): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

function flattenHeaders(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}
