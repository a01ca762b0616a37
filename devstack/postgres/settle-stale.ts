import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DevstackError } from '../devstack-error.js';
import { identifyProcess, readCommandLine } from '../machine/process-identity.js';
import type { ProcessIdentity } from '../machine/process-identity.js';
import { endServer, lookAtRecordedServer, removeServerRecord } from '../machine/server-record.js';
import { readTextIfThere } from '../machine/state-file.js';
import type { PostgresCluster } from './prepare-cluster.js';

/**
 * Stops the server that a killed process left on this data folder. The record says who started it; a server without
 * one (its starter was killed in between) is known by Postgres's own pid file and a command line that names the folder.
 */
export async function settleStalePostgres(
  cluster: PostgresCluster,
  onProgress: (line: string) => void,
): Promise<void> {
  const recorded = lookAtRecordedServer(cluster.recordFile);
  if (recorded.kind === 'in_use') {
    const { server, owner } = recorded.record;
    throw new DevstackError(
      'ALREADY_RUNNING',
      `process ${owner.pid} runs Postgres (process ${server.pid}) on ${cluster.dataDir} already: stop it first`,
    );
  }
  const stale =
    recorded.kind === 'stale' ? recorded.record.server : findUnrecorded(cluster.dataDir);
  if (stale !== null) {
    onProgress(`stopping Postgres (process ${stale.pid}), left behind on ${cluster.dataDir}`);
    if (!(await endServer(stale, 'postgres'))) {
      throw new DevstackError(
        'SERVER_NOT_STOPPED',
        `Postgres (process ${stale.pid}), left behind on ${cluster.dataDir}, does not stop`,
      );
    }
  }
  removeServerRecord(cluster.recordFile);
}

function findUnrecorded(dataDir: string): ProcessIdentity | null {
  const pidFile = join(dataDir, 'postmaster.pid');
  const pid = Number(readTextIfThere(pidFile)?.split('\n')[0]);
  const identity = identifyProcess(pid);
  if (identity === null) return null;
  const commandLine = readCommandLine(pid) ?? '';
  if (commandLine.includes('postgres') && commandLine.includes(`-D ${dataDir} `)) return identity;
  // The id was given to another program. Postgres would take that one for itself and refuse to start.
  if (!commandLine.includes('postgres')) rmSync(pidFile, { force: true });
  return null;
}
