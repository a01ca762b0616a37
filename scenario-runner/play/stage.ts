// Stage
// -----
// The real parts, set up for one play: a ledger database of its own, the simulator and workers as
// processes, and gates before Postgres, Temporal and the provider, so that outages are made from
// outside.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { createHoldfastClient, type HoldfastClient } from '../../client/holdfast-client.js';
import { createGate, type Gate } from '../../devstack/gate.js';
import { type SpawnedProcess, spawnProcess } from '../../devstack/processes.js';
import { type Ledger, openLedger } from '../../ledger/connection.js';
import type { LedgerDatabase } from './ledger-databases.js';
import { createProviderControl, type ProviderControl } from './provider-control.js';
import { createWorkerPool, type WorkerPool } from './worker-pool.js';

export interface StageOptions {
  /** Where the compiled programs are. */
  readonly distDir: string;
  /** For logs, the configuration file and the simulator's file of truth. */
  readonly workDir: string;
  readonly database: LedgerDatabase;
  readonly temporalAddress: string;
  readonly namespace: string;
  readonly taskQueue?: string;
  /** `--price` flags of the simulator, such as `fake-priced=3`. */
  readonly simulatorPrices: readonly string[];
  /** How long a tick of the provider's jobs takes, in milliseconds; without it none passes by itself. */
  readonly tickMs?: number;
  /** The text of the workers' configuration file. */
  readonly configText: (providerUrl: string) => string;
  /** How long a worker's sends may go on after SIGTERM, in milliseconds. */
  readonly shutdownGraceMs?: number;
  /** Of several stages; one of its own when left out. */
  readonly workerPool?: WorkerPool;
  /** Told of a worker that ended without being asked to, with what it said last. */
  readonly onWorkerEnd?: (worker: SpawnedProcess) => void;
}

export interface Stage {
  readonly ledger: Ledger;
  readonly databaseUrl: string;
  readonly databaseAdminUrl: string;
  readonly temporal: Client;
  readonly temporalAddress: string;
  readonly taskQueue: string;
  readonly holdfast: HoldfastClient;
  readonly provider: ProviderControl;
  /** Resolves when the provider's process has ended, which it never should by itself. */
  readonly providerEnded: Promise<string>;
  readonly providerPid: number;
  /** Each stands before one server, for the workers only. */
  readonly ledgerGate: Gate;
  readonly temporalGate: Gate;
  readonly providerGate: Gate;
  readonly configFile: string;
  startWorker(): Promise<SpawnedProcess>;
  /** Of the workers that were started and not yet killed. */
  workerPids(): readonly number[];
  /** A signal to every worker, by pid, and waits until they have ended; `kill -9` by default. */
  killWorkers(signal?: NodeJS.Signals): Promise<void>;
  /** Ends every process it started, and drops the database unless told to keep it. */
  close(options?: CloseOptions): Promise<void>;
}

export interface CloseOptions {
  readonly keepDatabase?: boolean;
  /** Workers are killed instead of being asked to stop in order. */
  readonly isHasty?: boolean;
}

export async function openStage(options: StageOptions): Promise<Stage> {
  mkdirSync(options.workDir, { recursive: true });
  const { taskQueue = 'holdfast' } = options;
  const { url: databaseUrl, adminUrl: databaseAdminUrl } = options.database;
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
  const pool =
    options.workerPool ??
    createWorkerPool({ distDir: options.distDir, workDir: options.workDir, spareCount: 0 });
  const workers: SpawnedProcess[] = [];
  return {
    ...{ ledger, databaseUrl, databaseAdminUrl, temporal, taskQueue, configFile },
    ...{ ledgerGate, temporalGate, providerGate },
    temporalAddress: options.temporalAddress,
    // Requests stand in the input: then a caller needs Temporal alone, also while the ledger is away.
    holdfast: createHoldfastClient({ client: temporal, taskQueue }),
    provider: createProviderControl(simulatorUrl),
    providerPid: simulator.pid,
    providerEnded: simulator.exited.then(
      ({ code, signal }) => `the simulator has ended (${signal ?? `exit code ${String(code)}`})`,
    ),
    async startWorker() {
      const worker = await pool.take({
        ...environmentOf(options, taskQueue),
        DATABASE_URL: throughGate(databaseUrl, ledgerGate),
        TEMPORAL_ADDRESS: `127.0.0.1:${temporalGate.port}`,
        HOLDFAST_CONFIG: configFile,
      });
      watch(worker, workers, options.onWorkerEnd);
      return worker;
    },
    workerPids: () => workers.map((worker) => worker.pid),
    async killWorkers(signal = 'SIGKILL') {
      await Promise.all(workers.splice(0).map((worker) => worker.stop(signal, 20_000)));
    },
    async close({ keepDatabase = false, isHasty = false } = {}) {
      // A worker that waits for a cut ledger could not stop: the ways come back first.
      for (const gate of gates) gate.pass();
      const signal = isHasty ? 'SIGKILL' : 'SIGTERM';
      await Promise.all(workers.splice(0).map((worker) => worker.stop(signal, 10_000)));
      if (options.workerPool === undefined) await pool.close();
      await simulator.stop(signal, 5_000);
      await Promise.all(gates.map((gate) => gate.close()));
      await ledger.close();
      await connection.close();
      if (!keepDatabase) await options.database.drop();
    },
  };
}

function environmentOf(options: StageOptions, taskQueue: string): Record<string, string> {
  const { namespace, shutdownGraceMs } = options;
  return {
    TEMPORAL_NAMESPACE: namespace,
    HOLDFAST_TASK_QUEUE: taskQueue,
    // Many workers of many plays cannot all serve their health at the one port that was inherited.
    HOLDFAST_HEALTH_PORT: '',
    SIMULATOR_API_KEY: 'simulator',
    ...(shutdownGraceMs !== undefined && { SHUTDOWN_GRACE_MS: String(shutdownGraceMs) }),
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
      ...(options.tickMs === undefined ? [] : ['--tick-ms', String(options.tickMs)]),
    ],
    env: process.env,
    logFile: join(options.workDir, 'simulator.log'),
  });
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
