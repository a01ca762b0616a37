// The worker process: reads the configuration, checks the ledger, serves the queues, and stops in
// order on SIGTERM or SIGINT. It prints one line when it is ready.

import { Runtime, type LogLevel as TemporalLogLevel } from '@temporalio/worker';
import type { Logger } from 'pino';
import { loadConfig } from '../config/config.js';
import type { ProviderSettings } from '../config/config-file.js';
import { createLogger } from '../config/logger.js';
import { HoldfastError } from '../domain/failure.js';
import { openLedger } from '../ledger/connection.js';
import { checkAtStartUp } from '../ledger/start-up-checks.js';
import { createProvider } from '../providers/create-provider.js';
import type { ProviderPort } from '../providers/port.js';
import { startWorker } from './worker.js';

const EXIT_FAILED = 3;

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const logger = createLogger(config.logLevel);
  installTemporalLogs(logger);
  if (config.databaseUrl === undefined) {
    throw new HoldfastError(
      'INVALID_CONFIGURATION',
      'DATABASE_URL is not set; give postgres://user:password@host:port/database, or run: npm start',
    );
  }
  const ledger = openLedger({
    databaseUrl: config.databaseUrl,
    poolSizeMax: config.databasePoolSizeMax,
    applicationName: 'holdfast worker',
  });
  await checkAtStartUp(ledger);
  const worker = await startWorker({
    temporal: { ...config.temporal.connectionOptions, address: config.temporal.address },
    namespace: config.temporal.namespace,
    shutdownGraceMs: config.shutdownGraceMs,
    dependencies: {
      ledger,
      logger,
      providers: new Map(
        config.file.providers.map((settings) => [settings.name, openProvider(settings)]),
      ),
      routes: new Map(config.file.routes.map((route) => [route.route, route])),
    },
  }).catch((error: unknown) => {
    throw new HoldfastError(
      'TEMPORAL_UNAVAILABLE',
      `cannot serve ${config.temporal.address}, namespace ${config.temporal.namespace}: ${messageOf(error)}`,
      { cause: error },
    );
  });
  logger.info(
    {
      temporalAddress: config.temporal.address,
      routes: config.file.routes.map((route) => route.route),
    },
    'worker ready',
  );
  process.stdout.write(`${JSON.stringify({ ready: true, pid: process.pid })}\n`);
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
  await worker.finished;
  await ledger.close();
  logger.info('worker stopped');
}

function openProvider(settings: ProviderSettings): ProviderPort {
  switch (settings.kind) {
    case 'metered':
      return createProvider(settings);
    case 'openai-chat':
      return createProvider({ ...settings, kind: 'openai_chat' });
  }
}

/** Temporal's own lines go through the same log. */
function installTemporalLogs(logger: Logger): void {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, meta?: object): void => {
      logger[level](meta ?? {}, message);
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

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`holdfast worker: ${messageOf(error)}\n`);
    process.exit(EXIT_FAILED);
  },
);
