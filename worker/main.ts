// The worker process: reads the configuration, checks the ledger, serves the queues, and stops in
// order on SIGTERM or SIGINT. It prints one line when it is ready.

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Runtime, type LogLevel as TemporalLogLevel } from '@temporalio/worker';
import type { Logger } from 'pino';
import { loadConfig } from '../config/config.js';
import { EMPTY_FILE, loadConfigFile, type ProviderSettings } from '../config/config-file.js';
import { createLogger } from '../config/logger.js';
import { HoldfastError } from '../domain/failure.js';
import { openLedger } from '../ledger/connection.js';
import { checkAtStartUp } from '../ledger/start-up-checks.js';
import { createProvider } from '../providers/create-provider.js';
import type { ProviderPort } from '../providers/port.js';
import { openHealth } from './health.js';
import { type RunningWorker, startWorker } from './worker.js';

const EXIT_FAILED = 3;

const WITHOUT_DATABASE = `DATABASE_URL is not set. A worker reads the environment only, never the addresses of a running npm start:
  export DATABASE_URL=postgres://app:password@host:5432/holdfast
  export TEMPORAL_ADDRESS=host:7233
  export HOLDFAST_CONFIG=holdfast.yaml   # with the secrets that it names
  node dist/worker/main.js`;

/** Only one of our queues has workflows, which is as it should be and no news. */
const NO_NEWS = 'No workflows registered';

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const logger = createLogger(config.logLevel);
  installTemporalLogs(logger);
  if (config.databaseUrl === undefined) {
    throw new HoldfastError('INVALID_CONFIGURATION', WITHOUT_DATABASE);
  }
  const file =
    config.filePath === undefined ? EMPTY_FILE : loadConfigFile(config.filePath, process.env);
  if (config.filePath === undefined) {
    logger.warn('no holdfast.yaml here and no HOLDFAST_CONFIG: this worker serves no route');
  }
  const ledger = openLedger({
    databaseUrl: config.databaseUrl,
    poolSizeMax: config.databasePoolSizeMax,
    applicationName: 'holdfast worker',
  });
  await checkAtStartUp(ledger);
  const { databaseUrl } = config;
  const health = await openHealth({ databaseUrl, at: config.health, logger });
  const worker = await startWorker({
    temporal: { ...config.temporal.connectionOptions, address: config.temporal.address },
    namespace: config.temporal.namespace,
    taskQueue: config.temporal.taskQueue,
    shutdownGraceMs: config.shutdownGraceMs,
    dependencies: {
      ledger,
      logger,
      telemetry: health.telemetry,
      providers: new Map(file.providers.map((settings) => [settings.name, openProvider(settings)])),
      routes: new Map(file.routes.map((route) => [route.route, route])),
    },
  }).catch((error: unknown) => {
    throw new HoldfastError(
      'TEMPORAL_UNAVAILABLE',
      `cannot serve ${config.temporal.address}, namespace ${config.temporal.namespace}: ${messageOf(error)}`,
      { cause: error },
    );
  });
  health.workerStarted(worker);
  logger.info(
    {
      temporalAddress: config.temporal.address,
      routes: file.routes.map((route) => route.route),
      healthPort: health.port,
    },
    'worker ready',
  );
  // A key that is undefined is not printed.
  const ready = { ready: true, pid: process.pid, healthPort: health.port };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
  stopWhenAsked(worker);
  await worker.finished;
  await health.close();
  await ledger.close();
  logger.info('worker stopped');
}

function stopWhenAsked(worker: RunningWorker): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      worker.shutdown();
    });
  }
  if (process.env['HOLDFAST_END_WITH_STDIN'] === '1') {
    // Whoever started us for a play holds the other end: when it dies, so do we, in order.
    process.stdin.resume().once('end', () => {
      worker.shutdown();
    });
  }
}

function openProvider(settings: ProviderSettings): ProviderPort {
  switch (settings.kind) {
    case 'metered':
      return createProvider(settings);
    case 'metered-jobs':
      return createProvider({ ...settings, kind: 'metered_jobs' });
    case 'openai-chat':
      return createProvider({ ...settings, kind: 'openai_chat' });
  }
}

/** Temporal's own lines go through the same log. */
function installTemporalLogs(logger: Logger): void {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, meta?: object): void => {
      logger[message.startsWith(NO_NEWS) ? 'debug' : level](meta ?? {}, message);
    };
  const bridge = {
    log(level: TemporalLogLevel, message: string, meta?: object) {
      at(PINO_LEVELS[level])(message, meta);
    },
    trace: at('debug'),
    debug: at('debug'),
    info: at('debug'),
    warn: at('warn'),
    error: at('error'),
  };
  Runtime.install({
    logger: bridge,
    // Signals are ours: the order of stopping is worker, ledger, end.
    shutdownSignals: [],
    telemetryOptions: { logging: { forward: {}, filter: { core: 'WARN', other: 'ERROR' } } },
  });
}

const PINO_LEVELS = {
  TRACE: 'debug',
  DEBUG: 'debug',
  INFO: 'debug',
  WARN: 'warn',
  ERROR: 'error',
} as const;

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * A spare worker has loaded everything and waits for its environment, one line of JSON on stdin: so a
 * play can have a new worker process at once.
 */
async function waitForEnvironment(): Promise<void> {
  process.stdout.write(`${JSON.stringify({ ready: true, isSpare: true, pid: process.pid })}\n`);
  const lines = createInterface({ input: process.stdin });
  const [line] = (await once(lines, 'line')) as [string];
  lines.close();
  Object.assign(process.env, JSON.parse(line));
}

const isSpare = process.env['HOLDFAST_WAIT_FOR_ENVIRONMENT'] === '1';
(isSpare ? waitForEnvironment().then(main) : main()).then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`holdfast worker: ${messageOf(error)}\n`);
    process.exit(EXIT_FAILED);
  },
);
