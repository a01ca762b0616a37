// Temporal
// --------
// Hands back one real Temporal server: the given one, or a development server of this checkout's own.
// 1. A given server is neither started nor stopped, and not even asked: how to log in to it is its user's matter.
// 2. Ours listens on 127.0.0.1 alone, and is handed back when it serves and its namespace exists.
// 3. A server that a killed process left behind in this state folder is stopped first; nothing else is ever touched.

import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DevstackError } from './devstack-error.js';
import { findFreePort, isPortFree } from './machine/ports.js';
import { isSameProcessAlive } from './machine/process-identity.js';
import type { ProcessIdentity } from './machine/process-identity.js';
import { tailOf } from './machine/run-command.js';
import {
  endServer,
  lookAtRecordedServer,
  removeServerRecord,
  writeServerRecord,
} from './machine/server-record.js';
import { spawnServer } from './machine/spawn-server.js';
import { findTemporalBinary } from './temporal/find-binary.js';
import type { TemporalBinary, TemporalBinarySearch } from './temporal/find-binary.js';
import { waitUntilServing } from './temporal/wait-until-serving.js';

export type SearchAttributeType =
  'Text' | 'Keyword' | 'Int' | 'Double' | 'Bool' | 'Datetime' | 'KeywordList';

export interface StartTemporalOptions extends TemporalBinarySearch {
  /** A server to use instead of starting one, as `host:port`. */
  temporalAddress?: string | undefined;
  searchAttributes?: Readonly<Record<string, SearchAttributeType>> | undefined;
  /** Lets timers and retries fire within tens of milliseconds instead of about a second; for tests. */
  fastTimers?: boolean | undefined;
  /** Keeps nothing after its end, and may stand beside others of this state folder; for tests. */
  inMemory?: boolean | undefined;
  /** Free ones by default. */
  port?: number | undefined;
  uiPort?: number | undefined;
}

export interface TemporalServer {
  address: string;
  uiUrl: string | null;
  binaryPath: string | null;
  /** Of the server; null when it was given. */
  version: string | null;
  given: boolean;
  pid: number | null;
  namespace: 'default';
  stop: () => Promise<void>;
}

const START_TRY_COUNT_MAX = 3;

export async function startTemporal(options: StartTemporalOptions): Promise<TemporalServer> {
  if (options.temporalAddress !== undefined) return useGivenTemporal(options.temporalAddress);
  const folder = join(options.stateDir, 'temporal');
  mkdirSync(folder, { recursive: true });
  await settleStaleTemporal(folder, options);
  const binary = await findTemporalBinary(options);
  for (let tryCount = 1; ; tryCount += 1) {
    const port = options.port ?? (await findFreePort());
    const uiPort = options.uiPort ?? (await findFreePort());
    const launched = await launchOnce({ binary, folder, port, uiPort }, options);
    if (launched.status === 'ready') return launched.server;
    // Most often a port was taken between our look and the server's: others are tried.
    const isHopeless = options.port !== undefined && !(await isPortFree(options.port));
    if (isHopeless || tryCount >= START_TRY_COUNT_MAX) {
      throw new DevstackError('TEMPORAL_NOT_STARTED', `Temporal did not start: ${launched.reason}`);
    }
  }
}

function useGivenTemporal(address: string): TemporalServer {
  return {
    ...{ address, uiUrl: null, binaryPath: null, version: null, given: true, pid: null },
    namespace: 'default',
    stop: () => Promise.resolve(),
  };
}

interface Launch {
  binary: TemporalBinary;
  folder: string;
  port: number;
  uiPort: number;
}

type LaunchOutcome =
  { status: 'ready'; server: TemporalServer } | { status: 'failed'; reason: string };

async function launchOnce(launch: Launch, options: StartTemporalOptions): Promise<LaunchOutcome> {
  const { binary, folder, port, uiPort } = launch;
  const name = recordName(options, port);
  const logFile = join(folder, `${name}.log`);
  const recordFile = join(folder, `${name}.json`);
  rmSync(logFile, { force: true });
  const spawned = await spawnServer({
    ...{ command: binary.path, args: serverArguments(launch, options), logFile },
    ...{ env: serverEnvironment(), cwd: folder },
  });
  if (spawned.status === 'not_spawned') return { status: 'failed', reason: spawned.reason };
  const { identity } = spawned;
  writeServerRecord(recordFile, identity, port);
  const files = { recordFile, ...(options.inMemory === true && { logFile }) };
  const address = `127.0.0.1:${port}`;
  const serving = await waitUntilServing(port, identity.pid, spawned.hasExited);
  if (serving.status === 'failed') {
    const log = tailOf(readFileSync(logFile, 'utf8'));
    await stopTemporal(identity, files);
    return { status: 'failed', reason: `${serving.reason}\n${log}` };
  }
  const server: TemporalServer = {
    ...{ address, uiUrl: `http://127.0.0.1:${uiPort}`, binaryPath: binary.path },
    ...{ version: serving.version, given: false, pid: identity.pid, namespace: 'default' },
    stop: () => stopTemporal(identity, files),
  };
  return { status: 'ready', server };
}

/** Only one server may write the database file, so its record has one name; those in memory have one each. */
function recordName(options: StartTemporalOptions, port: number): string {
  return options.inMemory === true ? `memory-${port}` : 'server';
}

/** Measured: the poll rates take a call from 351 ms to 79 ms, the pragmas double what 16 callers get done. */
function serverArguments(launch: Launch, options: StartTemporalOptions): string[] {
  const dynamicConfig = [
    'history.transferProcessorMaxPollRPS=100',
    'history.timerProcessorMaxPollRPS=100',
    ...(options.fastTimers === true ? ['history.timerProcessorMaxTimeShift="10ms"'] : []),
  ];
  const stored = [
    ...['--db-filename', join(launch.folder, 'temporal.db')],
    ...['--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=normal'],
  ];
  const attributes = Object.entries(options.searchAttributes ?? {});
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1'],
    ...['--port', String(launch.port), '--ui-port', String(launch.uiPort), '--log-level', 'error'],
    ...(options.inMemory === true ? [] : stored),
    ...dynamicConfig.flatMap((value) => ['--dynamic-config-value', value]),
    ...attributes.flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
  ];
}

/** A TEMPORAL_… variable meant for clients would steer the server's program as well. */
function serverEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  return Object.fromEntries(kept);
}

async function settleStaleTemporal(folder: string, options: StartTemporalOptions): Promise<void> {
  const records = readdirSync(folder).filter((name) => /^(server|memory-\d+)\.json$/.test(name));
  for (const name of records) {
    const recordFile = join(folder, name);
    const recorded = lookAtRecordedServer(recordFile);
    if (recorded.kind === 'in_use') {
      if (options.inMemory === true || name !== 'server.json') continue;
      const { server, owner } = recorded.record;
      throw new DevstackError(
        'ALREADY_RUNNING',
        `process ${owner.pid} runs Temporal (process ${server.pid}) on ${folder} already: stop it first`,
      );
    }
    if (recorded.kind === 'stale') {
      const { server } = recorded.record;
      options.onProgress(`stopping Temporal (process ${server.pid}), left behind in ${folder}`);
      await stopTemporal(server, { recordFile });
    }
    removeServerRecord(recordFile);
    if (name !== 'server.json') rmSync(recordFile.replace(/json$/, 'log'), { force: true });
  }
}

async function stopTemporal(
  identity: ProcessIdentity,
  files: { recordFile: string; logFile?: string },
): Promise<void> {
  if (isSameProcessAlive(identity) && !(await endServer(identity, 'temporal'))) {
    throw new DevstackError(
      'SERVER_NOT_STOPPED',
      `Temporal (process ${identity.pid}) does not stop`,
    );
  }
  removeServerRecord(files.recordFile);
  if (files.logFile !== undefined) rmSync(files.logFile, { force: true });
}
