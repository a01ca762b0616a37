import { createServer } from 'node:net';

const handedOut = new Set<number>();

/** A port nobody listens on now. Another process may still take it first, so callers try again. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = await bindOnce(0);
    if (port !== null && !handedOut.has(port)) {
      handedOut.add(port);
      return port;
    }
  }
}

export async function isPortFree(port: number): Promise<boolean> {
  return (await bindOnce(port)) !== null;
}

function bindOnce(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(null);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      const bound = typeof address === 'object' && address !== null ? address.port : null;
      server.close(() => {
        resolve(bound);
      });
    });
  });
}
