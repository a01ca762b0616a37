// Configuration
// -------------
// Everything is read once, at a composition root, and frozen. Secrets are never printed.

import { existsSync } from 'node:fs';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import { HoldfastError } from '../domain/failure.js';
import { EMPTY_FILE, type FileConfig, loadConfigFile } from './config-file.js';
import { LOG_LEVELS, type LogLevel } from './logger.js';

const Environment = z.object({
  DATABASE_URL: z
    .url({ error: 'is not a database address; give postgres://user:password@host:port/database' })
    .optional(),
  DATABASE_ADMIN_URL: z
    .url({ error: 'is not a database address; give postgres://user:password@host:port/database' })
    .optional(),
  DATABASE_POOL_SIZE_MAX: z.coerce.number().int().min(1).max(100).default(10),
  HOLDFAST_CONFIG: z.string().min(1).optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  SHUTDOWN_GRACE_MS: z.coerce.number().int().min(0).default(10_000),
});

export interface HoldfastConfig {
  /** The application's role. */
  readonly databaseUrl: string | undefined;
  /** The owner of the schema; needed for set-up only. */
  readonly databaseAdminUrl: string | undefined;
  readonly databasePoolSizeMax: number;
  readonly temporal: {
    readonly address: string;
    readonly namespace: string;
    readonly connectionOptions: ReturnType<typeof loadClientConnectConfig>['connectionOptions'];
  };
  readonly file: FileConfig;
  readonly logLevel: LogLevel;
  readonly shutdownGraceMs: number;
}

const DEFAULT_FILE = 'holdfast.yaml';
const DEFAULT_TEMPORAL_ADDRESS = '127.0.0.1:7233';

/** Throws HoldfastError INVALID_CONFIGURATION that lists every bad variable, or all of the file. */
export function loadConfig(environment: NodeJS.ProcessEnv): HoldfastConfig {
  const parsed = Environment.safeParse(environment);
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
    throw new HoldfastError('INVALID_CONFIGURATION', `the environment\n${lines.join('\n')}`);
  }
  const env = parsed.data;
  const path = env.HOLDFAST_CONFIG ?? (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined);
  const { connectionOptions, namespace } = loadClientConnectConfig();
  return Object.freeze({
    databaseUrl: env.DATABASE_URL,
    databaseAdminUrl: env.DATABASE_ADMIN_URL,
    databasePoolSizeMax: env.DATABASE_POOL_SIZE_MAX,
    temporal: {
      address: connectionOptions.address ?? DEFAULT_TEMPORAL_ADDRESS,
      namespace: namespace ?? 'default',
      connectionOptions,
    },
    file: path === undefined ? EMPTY_FILE : loadConfigFile(path, environment),
    logLevel: env.LOG_LEVEL,
    shutdownGraceMs: env.SHUTDOWN_GRACE_MS,
  });
}
