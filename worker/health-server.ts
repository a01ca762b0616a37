// Health server
// -------------
// Three pages for those who watch over a worker: is it alive, can it serve, what does it count. It
// changes nothing, knows no secret, and a bad request harms only its own connection.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { HoldfastError } from '../domain/failure.js';
import type { Metrics } from './metrics.js';
import type { Readiness } from './readiness.js';

const REQUEST_LIMIT_MS = 5_000;
const CONNECTION_COUNT_MAX = 100;

export interface HealthServer {
  readonly port: number;
  readonly close: () => Promise<void>;
}

interface HealthServerOptions {
  readonly host: string;
  /** 0 is any free one. */
  readonly port: number;
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: Pick<Metrics, 'scrape' | 'contentType'>;
  readonly logger: Logger;
}

interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Throws HoldfastError INVALID_CONFIGURATION when it cannot listen there. */
export async function serveHealth(options: HealthServerOptions): Promise<HealthServer> {
  const { host, port, logger } = options;
  const server = createServer((request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      logger.error({ error, url: request.url }, 'a page about health failed');
      send(response, sentence(500, 'This page failed; the log of the worker says why.'));
    });
  });
  server.headersTimeout = REQUEST_LIMIT_MS;
  server.requestTimeout = REQUEST_LIMIT_MS;
  server.maxConnections = CONNECTION_COUNT_MAX;
  server.on('clientError', (_, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
    else socket.destroy();
  });
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    throw new HoldfastError(
      'INVALID_CONFIGURATION',
      `cannot serve health on ${host}:${port}: ${error instanceof Error ? error.message : String(error)}. ` +
        'Give another HOLDFAST_HEALTH_PORT (0 is any free one) or HOLDFAST_HEALTH_HOST',
      { cause: error },
    );
  }
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(
  options: HealthServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const page = pagesOf(options).get(path);
  if (page === undefined) {
    send(response, sentence(404, 'Here are /healthz, /readyz and /metrics, and nothing else.'));
  } else if (request.method !== 'GET') {
    response.setHeader('allow', 'GET');
    response.setHeader('connection', 'close');
    send(response, sentence(405, `${path} can be read with GET, and nothing else.`));
  } else {
    send(response, await page());
  }
}

function pagesOf({
  readiness,
  metrics,
}: HealthServerOptions): ReadonlyMap<string, () => Promise<Page>> {
  return new Map<string, () => Promise<Page>>([
    ['/healthz', () => Promise.resolve(json(200, { status: 'alive' }))],
    [
      '/readyz',
      async () => {
        const ready = await readiness();
        return json(ready.status === 'ready' ? 200 : 503, ready);
      },
    ],
    [
      '/metrics',
      async () => ({
        status: 200,
        contentType: metrics.contentType,
        body: await metrics.scrape(),
      }),
    ],
  ]);
}

function send(response: ServerResponse, { status, contentType, body }: Page): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' });
  response.end(body);
}

function sentence(status: number, text: string): Page {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
}

function json(status: number, value: object): Page {
  return { status, contentType: 'application/json', body: `${JSON.stringify(value)}\n` };
}
