// Stage
// -----
// The real parts, set up for one play: a ledger database of its own, the simulator and workers as
// processes, and gates before Postgres and the provider, so that outages are made from outside.

import { mkdirSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { createHoldfastClient, type HoldfastClient } from '../client/holdfast-client.js';
import { createGate, type Gate } from '../devstack/gate.js';
import { type SpawnedProcess, spawnProcess } from '../devstack/processes.js';
import { createBodyStore } from '../ledger/bodies.js';
import { type Ledger, openLedger } from '../ledger/connection.js';
import { setUpLedger } from '../ledger/set-up.js';
import { createProviderControl, type ProviderControl } from './provider-control.js';

export interface StageOptions {
  /** Where the compiled programs are. */
  readonly distDir: string;
  /** For logs, the configuration file and the simulator's file of truth. */
  readonly workDir: string;
  readonly adminUrl: string;
  readonly databaseName: string;
  readonly temporalAddress: string;
  readonly namespace: string;
  readonly isTest: boolean;
  /** `--price` flags of the simulator, such as `fake-priced=3`. */
  readonly simulatorPrices: readonly string[];
  /** The text of the workers' configuration file. */
  readonly configText: (providerUrl: string) => string;
  /** How long a worker's sends may go on after SIGTERM, in milliseconds. */
  readonly shutdownGraceMs?: number;
  /** Told of a worker that ended without being asked to, with what it said last. */
  readonly onWorkerEnd?: (worker: SpawnedProcess) => void;
}

export interface Stage {
  readonly ledger: Ledger;
  readonly databaseUrl: string;
  readonly databaseAdminUrl: string;
  readonly temporal: Client;
  readonly holdfast: HoldfastClient;
  readonly provider: ProviderControl;
  /** Before Postgres, for the workers only. */
  readonly ledgerGate: Gate;
  /** Before Temporal, for the workers only. */
  readonly temporalGate: Gate;
  /** Before the provider, for the workers only. */
  readonly providerGate: Gate;
  readonly configFile: string;
  startWorker(): Promise<SpawnedProcess>;
  /** Of the workers that were started and not yet killed. */
  workerPids(): readonly number[];
  /** `kill -9` of every worker, by pid. */
  killWorkers(): Promise<void>;
  /** Ends every process it started, and drops the database unless told to keep it. */
  close(options?: { readonly keepDatabase?: boolean }): Promise<void>;
}

export async function openStage(options: StageOptions): Promise<Stage> {
  mkdirSync(options.workDir, { recursive: true });
  const role = { name: `${options.databaseName}_app`, password: randomBytes(12).toString('hex') };
  const databaseAdminUrl = withPath(options.adminUrl, options.databaseName);
  const databaseUrl = withRole(databaseAdminUrl, role);
  await setUpLedger({ adminUrl: databaseAdminUrl, role, isTest: options.isTest });

  const simulator = await startSimulator(options);
  const simulatorUrl = String(simulator.ready['url']);
  const [ledgerGate, temporalGate, providerGate] = await openGates([
    targetOf(databaseUrl, 5432),
    hostAndPort(options.temporalAddress),
    targetOf(simulatorUrl, 80),
  ]);
  const gates = [ledgerGate, temporalGate, providerGate];
  const configFile = join(options.workDir, 'holdfast.yaml');
  writeFileSync(configFile, options.configText(`http://127.0.0.1:${providerGate.port}`));

  const ledger = openLedger({ databaseUrl, applicationName: 'holdfast stage' });
  const connection = await Connection.connect({ address: options.temporalAddress });
  const temporal = new Client({ connection, namespace: options.namespace });
  const workers: SpawnedProcess[] = [];
  let workerCount = 0;
  return {
    ledger,
    databaseUrl,
    databaseAdminUrl,
    temporal,
    holdfast: createHoldfastClient({ client: temporal, bodyStore: createBodyStore(ledger) }),
    provider: createProviderControl(simulatorUrl),
    ledgerGate,
    temporalGate,
    providerGate,
    configFile,
    async startWorker() {
      workerCount += 1;
      const worker = await spawnWorker(options, {
        DATABASE_URL: throughGate(databaseUrl, ledgerGate),
        TEMPORAL_ADDRESS: `127.0.0.1:${temporalGate.port}`,
        HOLDFAST_CONFIG: configFile,
        LOG_FILE: join(options.workDir, `worker-${workerCount}.log`),
      });
      watch(worker, workers, options.onWorkerEnd);
      return worker;
    },
    workerPids: () => workers.map((worker) => worker.pid),
    async killWorkers() {
      await Promise.all(workers.splice(0).map((worker) => worker.stop('SIGKILL', 5_000)));
    },
    async close({ keepDatabase = false } = {}) {
      // A worker that waits for a cut ledger could not stop: the ways come back first.
      for (const gate of gates) gate.pass();
      await Promise.all(workers.splice(0).map((worker) => worker.stop('SIGTERM', 10_000)));
      await simulator.stop('SIGTERM', 5_000);
      await Promise.all(gates.map((gate) => gate.close()));
      await ledger.close();
      await connection.close();
      if (!keepDatabase) await dropDatabase(options.adminUrl, options.databaseName, role.name);
    },
  };
}

/** A worker that is still in the list when it ends did so by itself. */
function watch(
  worker: SpawnedProcess,
  workers: SpawnedProcess[],
  onEnd: StageOptions['onWorkerEnd'],
): void {
  workers.push(worker);
  void worker.exited.then(() => {
    const index = workers.indexOf(worker);
    if (index < 0) return;
    workers.splice(index, 1);
    onEnd?.(worker);
  });
}

function spawnWorker(
  options: StageOptions,
  { LOG_FILE: logFile, ...environment }: Record<string, string>,
): Promise<SpawnedProcess> {
  return spawnProcess({
    name: 'the worker',
    cwd: options.workDir,
    command: process.execPath,
    args: [join(options.distDir, 'worker', 'main.js')],
    env: {
      ...process.env,
      ...environment,
      TEMPORAL_NAMESPACE: options.namespace,
      SIMULATOR_API_KEY: 'simulator',
      HOLDFAST_END_WITH_STDIN: '1',
      ...(options.shutdownGraceMs !== undefined && {
        SHUTDOWN_GRACE_MS: String(options.shutdownGraceMs),
      }),
    },
    logFile,
  });
}

interface Target {
  readonly host: string;
  readonly port: number;
}

async function openGates(targets: readonly [Target, Target, Target]): Promise<[Gate, Gate, Gate]> {
  const [first, second, third] = targets;
  return Promise.all([
    createGate({ target: first }),
    createGate({ target: second }),
    createGate({ target: third }),
  ]);
}

function startSimulator(options: StageOptions): Promise<SpawnedProcess> {
  return spawnProcess({
    name: 'the simulator',
    cwd: options.workDir,
    command: process.execPath,
    args: [
      join(options.distDir, 'simulator', 'main.js'),
      '--end-with-stdin',
      '--truth',
      join(options.workDir, `truth-${process.pid}-${Date.now()}.jsonl`),
      ...options.simulatorPrices.flatMap((price) => ['--price', price]),
    ],
    env: process.env,
    logFile: join(options.workDir, 'simulator.log'),
  });
}

/** Only a database of the stage's own making is ever dropped. */
async function dropDatabase(adminUrl: string, database: string, role: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(`drop database if exists ${client.escapeIdentifier(database)} with (force)`);
    await client.query(`drop role if exists ${client.escapeIdentifier(role)}`);
  } finally {
    await client.end();
  }
}

function withPath(databaseUrl: string, database: string): string {
  const url = new URL(databaseUrl);
  url.pathname = `/${database}`;
  return url.toString();
}

function withRole(databaseUrl: string, role: { name: string; password: string }): string {
  const url = new URL(databaseUrl);
  url.username = role.name;
  url.password = role.password;
  return url.toString();
}

function throughGate(databaseUrl: string, gate: Gate): string {
  const url = new URL(databaseUrl);
  url.hostname = gate.host;
  url.port = String(gate.port);
  return url.toString();
}

function targetOf(text: string, defaultPort: number): { host: string; port: number } {
  const url = new URL(text);
  return { host: url.hostname, port: url.port === '' ? defaultPort : Number(url.port) };
}

function hostAndPort(address: string): { host: string; port: number } {
  const url = new URL(`tcp://${address}`);
  return { host: url.hostname, port: Number(url.port) };
}
