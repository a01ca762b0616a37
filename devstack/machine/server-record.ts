// Server record
// -------------
// A server outlives a killed starter, so a file beside its state says which process it is and who started it.
// 1. A server whose owner is alive is in use: it is neither stopped nor taken over.
// 2. A server whose owner is gone is stale, and stopping it is right.
// 3. Nothing is signalled unless both its id and its moment of start match the record.

import { rmSync } from 'node:fs';
import { endProcess, identifyProcess, isSameProcessAlive } from './process-identity.js';
import type { ProcessIdentity } from './process-identity.js';
import { parseFields, readTextIfThere, writePrivateFile } from './state-file.js';

export interface ServerRecord {
  server: ProcessIdentity;
  owner: ProcessIdentity;
  port: number;
}

export type RecordedServer =
  | { kind: 'none' }
  | { kind: 'gone'; record: ServerRecord | null }
  | { kind: 'in_use'; record: ServerRecord }
  | { kind: 'stale'; record: ServerRecord };

export function writeServerRecord(path: string, server: ProcessIdentity, port: number): void {
  const owner = identifyProcess(process.pid) ?? { pid: process.pid, startToken: '' };
  const record: ServerRecord = { server, owner, port };
  writePrivateFile(path, `${JSON.stringify(record)}\n`);
}

export function lookAtRecordedServer(path: string): RecordedServer {
  const text = readTextIfThere(path);
  if (text === null) return { kind: 'none' };
  const record = decodeServerRecord(text);
  if (record === null || !isSameProcessAlive(record.server)) return { kind: 'gone', record };
  return { kind: isSameProcessAlive(record.owner) ? 'in_use' : 'stale', record };
}

export function removeServerRecord(path: string): void {
  rmSync(path, { force: true });
}

/** How each server is asked to end, gently first. */
export const STOP_STEPS = {
  // SIGINT is Postgres's fast shutdown, SIGQUIT the immediate one: it recovers from its log at the next start.
  postgres: [
    { signal: 'SIGINT', limitMs: 30_000 },
    { signal: 'SIGQUIT', limitMs: 10_000 },
  ],
  temporal: [
    { signal: 'SIGTERM', limitMs: 15_000 },
    { signal: 'SIGKILL', limitMs: 5_000 },
  ],
} as const satisfies Record<string, readonly { signal: NodeJS.Signals; limitMs: number }[]>;

export function endServer(
  server: ProcessIdentity,
  kind: keyof typeof STOP_STEPS,
): Promise<boolean> {
  return endProcess(server, STOP_STEPS[kind]);
}

function decodeServerRecord(text: string): ServerRecord | null {
  const fields = parseFields(text);
  if (fields === null) return null;
  const server = decodeIdentity(fields['server']);
  const owner = decodeIdentity(fields['owner']);
  const port = fields['port'];
  if (server === null || owner === null || typeof port !== 'number') return null;
  return { server, owner, port };
}

export function decodeIdentity(value: unknown): ProcessIdentity | null {
  if (typeof value !== 'object' || value === null) return null;
  const { pid, startToken } = value as Record<string, unknown>;
  if (typeof pid !== 'number' || typeof startToken !== 'string') return null;
  return { pid, startToken };
}
