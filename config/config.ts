// Configuration
// -------------
// Everything is read once, at a composition root, and frozen. Secrets are never printed, and read
// only for whoever sends with them: a command that needs none must not fail for one that is missing.

import { existsSync } from 'node:fs';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import { HoldfastError } from '../domain/failure.js';
import { DEFAULT_TASK_QUEUE } from '../domain/identity.js';
import { LOG_LEVELS, type LogLevel } from './logger.js';

const DATABASE_ADDRESS_RULE =
  'is not a database address; give postgres://user:password@host:port/database';

const PORT_RULE = 'is not a port; give 1 to 65535, or 0 for any free one';
const PORT_MAX = 65_535;
/** Set to nothing is not set: so whoever starts many workers can switch an inherited one off. */
const OptionalPort = z
  .string()
  .regex(/^\d{0,5}$/, { error: PORT_RULE })
  .transform((text) => (text === '' ? undefined : Number(text)))
  .refine((port) => port === undefined || port <= PORT_MAX, { error: PORT_RULE })
  .optional();

const Environment = z.object({
  DATABASE_URL: z.url({ error: DATABASE_ADDRESS_RULE }).optional(),
  DATABASE_ADMIN_URL: z.url({ error: DATABASE_ADDRESS_RULE }).optional(),
  DATABASE_POOL_SIZE_MAX: z.coerce.number().int().min(1).max(100).default(10),
  HOLDFAST_CONFIG: z.string().min(1).optional(),
  HOLDFAST_HEALTH_HOST: z.string().min(1).default('127.0.0.1'),
  HOLDFAST_HEALTH_PORT: OptionalPort,
  HOLDFAST_TASK_QUEUE: z.string().min(1).default(DEFAULT_TASK_QUEUE),
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
    /** Where workers serve and clients start. */
    readonly taskQueue: string;
    readonly connectionOptions: ReturnType<typeof loadClientConnectConfig>['connectionOptions'];
  };
  /** Where the configuration file is, not what it says: few commands need that. */
  readonly filePath: string | undefined;
  /** Where a worker serves its health and its figures; undefined is nowhere. */
  readonly health: { readonly host: string; readonly port: number } | undefined;
  readonly logLevel: LogLevel;
  readonly shutdownGraceMs: number;
}

export const DEFAULT_FILE = 'holdfast.yaml';
const DEFAULT_TEMPORAL_ADDRESS = '127.0.0.1:7233';

/** Throws HoldfastError INVALID_CONFIGURATION that lists every bad variable. */
export function loadConfig(environment: NodeJS.ProcessEnv): HoldfastConfig {
  const parsed = Environment.safeParse(environment);
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
    throw new HoldfastError('INVALID_CONFIGURATION', `the environment\n${lines.join('\n')}`);
  }
  const env = parsed.data;
  const { connectionOptions, namespace } = loadClientConnectConfig({
    overrideEnvVars: environment as Record<string, string>,
  });
  return Object.freeze({
    databaseUrl: env.DATABASE_URL,
    databaseAdminUrl: env.DATABASE_ADMIN_URL,
    databasePoolSizeMax: env.DATABASE_POOL_SIZE_MAX,
    temporal: {
      address: connectionOptions.address ?? DEFAULT_TEMPORAL_ADDRESS,
      namespace: namespace ?? 'default',
      taskQueue: env.HOLDFAST_TASK_QUEUE,
      connectionOptions,
    },
    filePath: env.HOLDFAST_CONFIG ?? (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined),
    health:
      env.HOLDFAST_HEALTH_PORT === undefined
        ? undefined
        : { host: env.HOLDFAST_HEALTH_HOST, port: env.HOLDFAST_HEALTH_PORT },
    logLevel: env.LOG_LEVEL,
    shutdownGraceMs: env.SHUTDOWN_GRACE_MS,
  });
}
