// Context
// -------
// Where a command finds the servers: the environment, then the run file of a stack that runs in
// this checkout, else it says how to start one.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client, Connection as TemporalConnection } from '@temporalio/client';
import { DEFAULT_FILE, type HoldfastConfig, loadConfig } from '../config/config.js';
import { readRunFile, type Run } from '../devstack/run-file.js';
import { HoldfastError } from '../domain/failure.js';
import { type Ledger, openLedger } from '../ledger/connection.js';
import { CommandEnd, EXIT, withProgress } from './output.js';

export const DIST_DIR = dirname(dirname(fileURLToPath(import.meta.url)));
export const CHECKOUT_DIR = dirname(DIST_DIR);
/** The run file and the data of a stack stand here; another folder is for tests. */
export const STATE_DIR = process.env['HOLDFAST_STATE_DIR'] ?? join(CHECKOUT_DIR, '.holdfast');
const TEMPORAL_LIMIT_MS = 5_000;

/** The run of this checkout, if one is up. */
export function currentRun(): Run | undefined {
  const file = readRunFile(STATE_DIR);
  return file.kind === 'running' ? file.run : undefined;
}

/** The environment, filled up from the run file: what was set by hand wins, variable by variable. */
export function currentEnvironment(): NodeJS.ProcessEnv {
  const run = currentRun();
  return { ...(run !== undefined && fromRun(run)), ...process.env };
}

export function currentConfig(): HoldfastConfig {
  return loadConfig(currentEnvironment());
}

function fromRun(run: Run): Record<string, string> {
  // A file in the working directory is its user's own, and stands before the one of the run.
  const hasOwnFile = existsSync(DEFAULT_FILE);
  return {
    DATABASE_URL: run.databaseUrl,
    DATABASE_ADMIN_URL: run.databaseAdminUrl,
    TEMPORAL_ADDRESS: run.temporalAddress,
    TEMPORAL_NAMESPACE: run.temporalNamespace,
    // The simulator takes any key.
    SIMULATOR_API_KEY: 'simulator',
    ...(run.configFile !== null && !hasOwnFile && { HOLDFAST_CONFIG: run.configFile }),
  };
}

export function nothingRunning(what: string): CommandEnd {
  return new CommandEnd(
    EXIT.failed,
    `NOTHING_RUNNING: ${what} is not set and nothing runs in this checkout. ` +
      `Start a stack with: npm start, or set ${what}`,
  );
}

/** `host:port/name`: enough to see which database it is, and never a password. */
export function describeDatabase(databaseUrl: string): string {
  const { hostname, port, pathname, searchParams } = new URL(databaseUrl);
  const host = hostname === '' ? (searchParams.get('host') ?? 'localhost') : hostname;
  return `${host}:${port === '' ? '5432' : port}/${decodeURIComponent(pathname.slice(1))}`;
}

/** Opens the ledger for the work of one command, and closes it. */
export async function withLedger<T>(work: (ledger: Ledger) => Promise<T>): Promise<T> {
  const { databaseUrl } = currentConfig();
  if (databaseUrl === undefined) throw nothingRunning('DATABASE_URL');
  const ledger = openLedger({ databaseUrl, poolSizeMax: 2, applicationName: 'holdfast cli' });
  try {
    return await work(
      speaking(ledger, `waiting for the ledger at ${describeDatabase(databaseUrl)}`),
    );
  } finally {
    await ledger.close();
  }
}

/** A step may be tried for seconds: then it says so. */
function speaking(ledger: Ledger, what: string): Ledger {
  return {
    query: (statement) => withProgress(what, ledger.query(statement)),
    call: (name, argument) => withProgress(what, ledger.call(name, argument)),
    close: () => ledger.close(),
  };
}

/** Connects to Temporal for the work of one command; TEMPORAL_UNAVAILABLE when it is not there. */
export async function withTemporal<T>(work: (client: Client) => Promise<T>): Promise<T> {
  if (currentRun() === undefined && process.env['TEMPORAL_ADDRESS'] === undefined) {
    throw nothingRunning('TEMPORAL_ADDRESS');
  }
  const { temporal } = currentConfig();
  // Loaded here: it takes longer than all the rest of a command.
  const temporalClient = await import('@temporalio/client');
  let connection: TemporalConnection;
  try {
    const connecting = temporalClient.Connection.connect({
      ...temporal.connectionOptions,
      address: temporal.address,
      connectTimeout: TEMPORAL_LIMIT_MS,
    });
    connection = await withProgress(`waiting for Temporal at ${temporal.address}`, connecting);
  } catch (error) {
    throw new HoldfastError(
      'TEMPORAL_UNAVAILABLE',
      `nothing answers at ${temporal.address}; start a stack with: npm start, or correct TEMPORAL_ADDRESS`,
      { cause: error },
    );
  }
  try {
    return await work(new temporalClient.Client({ connection, namespace: temporal.namespace }));
  } finally {
    await connection.close();
  }
}
