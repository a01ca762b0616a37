// Servers of one play's own, so that they can be stopped under it and started again where they were.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../../devstack/postgres.js';
import { defaultCacheDirs } from '../../devstack/temporal/find-binary.js';
import { type SearchAttributeType, startTemporal } from '../../devstack/temporal.js';
import type { Scenario } from '../language/scenario.js';
import { type LedgerDatabase, setUpDatabase } from '../play/ledger-databases.js';
import type { OwnServers } from '../play/play.js';

export function needsOwnServers({ steps }: Scenario): boolean {
  return steps.some(({ word }) => word === 'stop' || word === 'lose');
}

interface Opened extends OwnServers {
  readonly database: LedgerDatabase;
  readonly temporalAddress: string;
  close(): Promise<void>;
}

export async function openOwnServers(options: {
  readonly id: string;
  readonly searchAttributes: Readonly<Record<string, SearchAttributeType>>;
  readonly tell: (line: string) => void;
}): Promise<Opened> {
  const { id, searchAttributes, tell } = options;
  const stateDir = mkdtempSync(join(tmpdir(), 'holdfast-own-'));
  chmodSync(stateDir, 0o755);
  const onProgress = tell;
  const postgresOptions = { stateDir, onProgress };
  const temporalOptions = {
    ...{ stateDir, onProgress, fastTimers: true },
    searchAttributes,
    cacheDirs: defaultCacheDirs(join(stateDir, 'cache')),
  };
  let [postgres, temporal] = await Promise.all([
    startPostgres(postgresOptions),
    startTemporal(temporalOptions),
  ]);
  const database = await setUpDatabase({
    adminUrl: postgres.adminUrl,
    name: `play_${id}`,
    isTest: true,
  });
  return {
    database,
    temporalAddress: temporal.address,
    stop: (server) => (server === 'postgres' ? postgres.stop() : temporal.stop()),
    async start(server) {
      if (server === 'postgres') {
        postgres = await startPostgres({ ...postgresOptions, port: postgres.port });
        return;
      }
      const port = Number(new URL(`tcp://${temporal.address}`).port);
      temporal = await startTemporal({ ...temporalOptions, port });
    },
    async loseTemporal() {
      await temporal.stop();
      rmSync(join(stateDir, 'temporal'), { recursive: true, force: true });
      const port = Number(new URL(`tcp://${temporal.address}`).port);
      temporal = await startTemporal({ ...temporalOptions, port });
    },
    async close() {
      await Promise.allSettled([temporal.stop(), postgres.stop()]);
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
