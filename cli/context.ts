// Context
// -------
// Where a command finds the servers: the environment, then the run file of a stack that runs in
// this checkout, else it says how to start one.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { type HoldfastConfig, loadConfig } from '../config/config.js';
import { readRunFile, type Run } from '../devstack/run-file.js';
import { HoldfastError } from '../domain/failure.js';
import { type Ledger, openLedger } from '../ledger/connection.js';
import { CommandEnd, EXIT } from './output.js';

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

/** The environment, filled up from the run file. */
export function currentConfig(): HoldfastConfig {
  const run = currentRun();
  const filled = run === undefined ? {} : fromRun(run);
  for (const [name, value] of Object.entries(filled)) {
    if (process.env[name] === undefined) process.env[name] = value;
  }
  return loadConfig(process.env);
}

function fromRun(run: Run): Record<string, string> {
  return {
    DATABASE_URL: run.databaseUrl,
    DATABASE_ADMIN_URL: run.databaseAdminUrl,
    TEMPORAL_ADDRESS: run.temporalAddress,
    TEMPORAL_NAMESPACE: run.temporalNamespace,
    // The simulator takes any key.
    SIMULATOR_API_KEY: 'simulator',
    ...(run.configFile !== null && { HOLDFAST_CONFIG: run.configFile }),
  };
}

export function nothingRunning(what: string): CommandEnd {
  return new CommandEnd(
    EXIT.failed,
    `NOTHING_RUNNING: ${what} is not set and nothing runs in this checkout. ` +
      `Start a stack with: npm start, or set ${what}`,
  );
}

/** Opens the ledger for the work of one command, and closes it. */
export async function withLedger<T>(work: (ledger: Ledger) => Promise<T>): Promise<T> {
  const { databaseUrl } = currentConfig();
  if (databaseUrl === undefined) throw nothingRunning('DATABASE_URL');
  const ledger = openLedger({ databaseUrl, poolSizeMax: 2, applicationName: 'holdfast cli' });
  try {
    return await work(ledger);
  } finally {
    await ledger.close();
  }
}

/** Connects to Temporal for the work of one command; TEMPORAL_UNAVAILABLE when it is not there. */
export async function withTemporal<T>(work: (client: Client) => Promise<T>): Promise<T> {
  if (currentRun() === undefined && process.env['TEMPORAL_ADDRESS'] === undefined) {
    throw nothingRunning('TEMPORAL_ADDRESS');
  }
  const { temporal } = currentConfig();
  let connection: Connection;
  try {
    connection = await Connection.connect({
      ...temporal.connectionOptions,
      address: temporal.address,
      connectTimeout: TEMPORAL_LIMIT_MS,
    });
  } catch (error) {
    throw new HoldfastError(
      'TEMPORAL_UNAVAILABLE',
      `nothing answers at ${temporal.address}; start a stack with: npm start, or correct TEMPORAL_ADDRESS`,
      { cause: error },
    );
  }
  try {
    return await work(new Client({ connection, namespace: temporal.namespace }));
  } finally {
    await connection.close();
  }
}
