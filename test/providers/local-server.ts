import { createServer as createHttpServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach } from 'vitest';

export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface LocalServer {
  readonly port: number;
  readonly url: string;
  /** Every connection ever accepted. */
  readonly connectionCount: () => number;
  /** Every byte ever read from a client, behind TLS where there is TLS. */
  readonly receivedText: () => string;
  readonly requests: readonly Heard[];
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer | object;
}

const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A server that does with each connection what it is told. */
export async function startTcpServer(
  onConnection: (socket: Socket) => void,
  tls?: { readonly key: string; readonly cert: string },
): Promise<LocalServer> {
  let connectionCount = 0;
  let received = '';
  const accept = (socket: Socket): void => {
    connectionCount += 1;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    closers.push(() => socket.destroy());
    onConnection(socket);
  };
  const server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  server.on('tlsClientError', () => undefined);
  const port = await listen(server);
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  return {
    port,
    url,
    connectionCount: () => connectionCount,
    receivedText: () => received,
    requests: [],
  };
}

/** An HTTP server that answers every request with one reply. */
export async function startHttpServer(
  reply: Reply | ((heard: Heard) => Reply),
): Promise<LocalServer> {
  let connectionCount = 0;
  const requests: Heard[] = [];
  const server = createHttpServer((incoming, outgoing) => {
    let text = '';
    incoming.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming;
      const heard = { method, path: url, headers, text };
      requests.push(heard);
      const {
        status = 200,
        headers: own,
        body,
      } = typeof reply === 'function' ? reply(heard) : reply;
      outgoing.writeHead(status, { 'content-type': 'application/json', ...own });
      const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
      outgoing.end(isRaw ? body : JSON.stringify(body));
    });
  });
  server.on('connection', () => {
    connectionCount += 1;
  });
  closers.push(() => {
    server.closeAllConnections();
  });
  const port = await listen(server);
  const url = `http://127.0.0.1:${port}`;
  return { port, url, connectionCount: () => connectionCount, receivedText: () => '', requests };
}

function listen(server: Server): Promise<number> {
  closers.push(() => server.close());
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** A port that nobody listens on. */
export async function findClosedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Long enough for a second connection to show itself, were there one. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}

export const never = (): AbortSignal => new AbortController().signal;
