import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startPostgres } from './postgres.js';
import type { PostgresServer } from './postgres.js';
import type { PostgresFlavour } from './postgres/find-binaries.js';
import { startTemporal } from './temporal.js';
import { defaultCacheDirs } from './temporal/find-binary.js';
import type { SearchAttributeType, TemporalServer } from './temporal.js';

export interface StartDevstackOptions {
  checkoutDir: string;
  /** `.holdfast` in the checkout by default. */
  stateDir?: string | undefined;
  databaseAdminUrl?: string | undefined;
  temporalAddress?: string | undefined;
  searchAttributes?: Readonly<Record<string, SearchAttributeType>> | undefined;
  fastTimers?: boolean | undefined;
  inMemoryTemporal?: boolean | undefined;
  postgresFlavour?: PostgresFlavour | undefined;
  /** Where a fetched program is kept; by default in the user's cache, else in the checkout's. */
  cacheDirs?: readonly string[] | undefined;
  onProgress: (line: string) => void;
}

export interface Devstack {
  postgres: PostgresServer;
  temporal: TemporalServer;
  /** Temporal first, then Postgres; the second is stopped also when the first one refuses. */
  stop: () => Promise<void>;
}

/** Starts both at once. When one fails, the other is stopped before the failure is told. */
export async function startDevstack(options: StartDevstackOptions): Promise<Devstack> {
  const { onProgress } = options;
  const stateDir = options.stateDir ?? join(options.checkoutDir, '.holdfast');
  prepareStateDir(stateDir);
  const [postgres, temporal] = await Promise.allSettled([
    startPostgres({
      ...{ stateDir, onProgress, databaseAdminUrl: options.databaseAdminUrl },
      flavour: options.postgresFlavour,
    }),
    startTemporal({
      ...{ stateDir, onProgress, temporalAddress: options.temporalAddress },
      searchAttributes: options.searchAttributes,
      fastTimers: options.fastTimers,
      inMemory: options.inMemoryTemporal,
      cacheDirs: options.cacheDirs ?? defaultCacheDirs(join(options.checkoutDir, '.holdfast')),
    }),
  ]);
  if (postgres.status === 'fulfilled' && temporal.status === 'fulfilled') {
    const servers = [temporal.value, postgres.value];
    return { postgres: postgres.value, temporal: temporal.value, stop: () => stopAll(servers) };
  }
  const started: { stop: () => Promise<void> }[] = [];
  const failures: unknown[] = [];
  for (const outcome of [temporal, postgres]) {
    if (outcome.status === 'fulfilled') started.push(outcome.value);
    else failures.push(outcome.reason);
  }
  await stopAll(started);
  throwAll(failures);
}

/** As root Postgres runs as another account, which must get through to its data whatever our umask is. */
function prepareStateDir(stateDir: string): void {
  if (existsSync(stateDir)) return;
  mkdirSync(stateDir, { recursive: true });
  chmodSync(stateDir, 0o755);
}

/** Each is tried, whatever became of the one before. */
async function stopAll(servers: readonly { stop: () => Promise<void> }[]): Promise<void> {
  const failures: unknown[] = [];
  for (const server of servers) {
    try {
      await server.stop();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throwAll(failures);
}

function throwAll(failures: readonly unknown[]): never {
  if (failures.length === 1) throw failures[0];
  throw new AggregateError(failures, failures.map(String).join('\n'));
}
