// Run file
// --------
// `run.json` tells other commands of this checkout where everything is while one main process runs it.
// 1. A reader sees a whole file or none; only the account that wrote it may read it, since it holds passwords.
// 2. It counts while the process that wrote it lives, known by id and moment of start.
// 3. A file that cannot be understood is stale, never a crash.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { identifyProcess, isSameProcessAlive } from './machine/process-identity.js';
import type { ProcessIdentity } from './machine/process-identity.js';
import { decodeIdentity } from './machine/server-record.js';
import { parseFields, readTextIfThere, writePrivateFile } from './machine/state-file.js';

/** What the main process tells. */
export interface RunAddresses {
  databaseUrl: string;
  databaseAdminUrl: string;
  temporalAddress: string;
  temporalNamespace: string;
  uiUrl: string | null;
  simulatorUrl: string | null;
  temporalBinary: string | null;
  configFile: string | null;
}

export interface Run extends RunAddresses {
  schemaVersion: typeof SCHEMA_VERSION;
  startedAt: string;
  main: ProcessIdentity;
}

export type RunFile =
  | { kind: 'none' }
  | { kind: 'stale'; reason: string; run: Run | null }
  | { kind: 'running'; run: Run };

const SCHEMA_VERSION = 1;
const FILE_NAME = 'run.json';

/** Says that this process runs the checkout whose state stands in `stateDir`. */
export function writeRunFile(stateDir: string, addresses: RunAddresses): Run {
  const main = identifyProcess(process.pid) ?? { pid: process.pid, startToken: '' };
  const startedAt = new Date().toISOString();
  const run: Run = { schemaVersion: SCHEMA_VERSION, startedAt, main, ...addresses };
  writePrivateFile(join(stateDir, FILE_NAME), `${JSON.stringify(run, null, 2)}\n`);
  return run;
}

export function readRunFile(stateDir: string): RunFile {
  const text = readTextIfThere(join(stateDir, FILE_NAME));
  if (text === null) return { kind: 'none' };
  const run = decodeRun(text);
  if (run === null)
    return { kind: 'stale', reason: 'the file is not a run file of this version', run };
  if (isSameProcessAlive(run.main)) return { kind: 'running', run };
  return { kind: 'stale', reason: `process ${run.main.pid} is gone`, run };
}

/** Leaves the file of another live process where it is; answers whether it removed one. */
export function removeRunFile(stateDir: string): boolean {
  const found = readRunFile(stateDir);
  if (found.kind === 'none') return false;
  if (found.kind === 'running' && found.run.main.pid !== process.pid) return false;
  rmSync(join(stateDir, FILE_NAME), { force: true });
  return true;
}

function decodeRun(text: string): Run | null {
  const fields = parseFields(text);
  const main = decodeIdentity(fields?.['main']);
  if (fields === null || fields['schemaVersion'] !== SCHEMA_VERSION || main === null) return null;
  const required = [
    'startedAt',
    'databaseUrl',
    'databaseAdminUrl',
    'temporalAddress',
    'temporalNamespace',
  ];
  const optional = ['uiUrl', 'simulatorUrl', 'temporalBinary', 'configFile'];
  const isWhole =
    required.every((name) => typeof fields[name] === 'string') &&
    optional.every((name) => fields[name] === null || typeof fields[name] === 'string');
  return isWhole ? (fields as unknown as Run) : null;
}
