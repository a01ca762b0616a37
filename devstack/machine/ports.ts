import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { systemCodeOf } from '../devstack-error.js';

/**
 * Below the range that systems hand out by themselves. A server that lets the system choose its inner ports, as
 * Temporal's does, would otherwise now and then be given the very port we are about to name to it.
 */
const PORT_MIN = 20_000;
const PORT_MAX = 32_000;

const handedOut = new Set<number>();

/** A port nobody listens on now. Another process may still take it first, so callers try again. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if (handedOut.has(port)) continue;
    handedOut.add(port);
    if (await isPortFree(port)) return port;
  }
}

/** Asked by binding it, on this machine's own address alone. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}

/**
 * Whether this very process listens on the port: a stranger's server that took it first answers as well as ours would.
 * Null where the system does not tell.
 */
export function isListener(pid: number, port: number): boolean | null {
  if (process.platform !== 'linux') return null;
  try {
    const sockets = listeningSockets(port);
    return readdirSync(`/proc/${pid}/fd`).some((name) => {
      const target = readLinkIfThere(`/proc/${pid}/fd/${name}`);
      return target !== null && sockets.has(target);
    });
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === 'ENOENT' || code === 'ESRCH') return false;
    if (code === 'EACCES' || code === 'EPERM') return null;
    throw error;
  }
}

/** As the links of a process's open files name them. */
function listeningSockets(port: number): Set<string> {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1);
  const fields = rows.map((row) => row.trim().split(/\s+/));
  // Local address, state (0A is LISTEN) and inode.
  const listening = fields.filter((row) => row[1]?.endsWith(wanted) === true && row[3] === '0A');
  return new Set(listening.map((row) => `socket:[${row[9] ?? ''}]`));
}

/** A file may be closed between the listing and the look. */
function readLinkIfThere(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}
