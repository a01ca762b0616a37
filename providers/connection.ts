// Connection
// ----------
// One attempt at one connection to one address: a name's first address, no second try, nothing reused.
// Until it is opened not one byte of a request can have left, so every failure here is provable.

import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface ConnectionOptions {
  /** Names, TCP and TLS together. */
  readonly connectTimeoutMs: number;
  /** A private authority's certificate in PEM, in place of the public ones. */
  readonly ca?: string;
}

export type Connection =
  | { readonly status: 'open'; readonly socket: Socket }
  | { readonly status: 'failed'; readonly detail: string };

const KEEP_ALIVE_PROBE_MS = 30_000;

/** A code or a class of error, never its message: messages can repeat a header or an address. */
export function nameError(error: unknown): string {
  if (!(error instanceof Error)) return 'an error without a name';
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code : error.name;
}

export function openConnection(
  url: URL,
  options: ConnectionOptions,
  signal: AbortSignal,
): Promise<Connection> {
  if (signal.aborted) return Promise.resolve({ status: 'failed', detail: 'aborted' });
  return new Promise((resolve) => {
    const socket = startSocket(url, options);
    const opened = url.protocol === 'https:' ? 'secureConnect' : 'connect';
    const timer = setTimeout(() => {
      fail(`no connection within ${options.connectTimeoutMs} ms`);
    }, options.connectTimeoutMs);

    function stopWaiting(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      socket.off(opened, open).off('error', failBy).off('close', close);
    }
    function fail(detail: string): void {
      stopWaiting();
      // The socket of an abandoned connection may still report why it ended.
      socket.on('error', () => undefined).destroy();
      resolve({ status: 'failed', detail });
    }
    function failBy(error: Error): void {
      fail(nameError(error));
    }
    function abort(): void {
      fail('aborted');
    }
    function close(): void {
      fail('closed before it was open');
    }
    function open(): void {
      stopWaiting();
      resolve({ status: 'open', socket });
    }

    signal.addEventListener('abort', abort, { once: true });
    socket.once(opened, open).once('error', failBy).once('close', close);
  });
}

function startSocket(url: URL, { ca }: ConnectionOptions): Socket {
  const isSecure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port);
  const address = { host, port, autoSelectFamily: false };
  const socket = isSecure
    ? connectTls({
        ...address,
        ALPNProtocols: ['http/1.1'],
        ...(isIP(host) === 0 && { servername: host }),
        ...(ca !== undefined && { ca }),
      })
    : connectTcp(address);
  return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
}
