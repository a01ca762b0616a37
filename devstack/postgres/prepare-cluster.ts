import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DevstackError } from '../devstack-error.js';
import { readStartToken } from '../machine/process-identity.js';
import { runCommand, tailOf } from '../machine/run-command.js';
import { readTextIfThere, writePrivateFile } from '../machine/state-file.js';
import { findClosedFolder } from './data-place.js';
import type { Account, DataPlace } from './data-place.js';
import type { PostgresBinaries } from './find-binaries.js';

export interface PostgresCluster {
  binDir: string;
  /** Holds what follows; one folder a major version, because only that version can read it. */
  folder: string;
  dataDir: string;
  password: string;
  recordFile: string;
  logFile: string;
}

/** Which majors have a cluster in this place. */
export function listMajorsWithData(place: DataPlace): number[] {
  if (!existsSync(place.folder)) return [];
  return readdirSync(place.folder)
    .map(Number)
    .filter((major) => existsSync(join(place.folder, String(major), 'data', 'PG_VERSION')));
}

export async function prepareCluster(
  place: DataPlace,
  binaries: PostgresBinaries,
  onProgress: (line: string) => void,
): Promise<PostgresCluster> {
  const folder = join(place.folder, String(binaries.major));
  makeFolder(folder, place.account);
  const binDir = await makeBinariesReachable(place, binaries, onProgress);
  const dataDir = join(folder, 'data');
  const passwordFile = join(folder, 'password');
  if (!existsSync(dataDir)) {
    onProgress(`creating a Postgres ${binaries.version} cluster in ${dataDir}`);
    await createCluster({ binDir, dataDir, passwordFile, account: place.account });
  }
  const password = readTextIfThere(passwordFile)?.trim();
  if (password === undefined || password === '') {
    throw new DevstackError(
      'POSTGRES_NOT_STARTED',
      `${passwordFile} is gone, so nobody can log in to ${dataDir}. Remove both to start empty.`,
    );
  }
  return {
    binDir,
    folder,
    dataDir,
    password,
    recordFile: join(folder, 'server.json'),
    logFile: join(folder, 'server.log'),
  };
}

interface ClusterRequest {
  binDir: string;
  dataDir: string;
  passwordFile: string;
  account: Account | null;
}

/** Made under another name and renamed at the end, so that a killed `initdb` leaves no half a cluster. */
async function createCluster(request: ClusterRequest): Promise<void> {
  const { dataDir, passwordFile, account } = request;
  removeLeftovers(dataDir);
  const part = `${dataDir}.${process.pid}`;
  writePrivateFile(passwordFile, `${randomBytes(24).toString('hex')}\n`);
  if (account !== null) chownSync(passwordFile, account.uid, account.gid);
  const made = await runCommand({
    command: join(request.binDir, 'initdb'),
    args: [
      ...['--pgdata', part, '--username', 'postgres', '--pwfile', passwordFile],
      ...['--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C', '--no-instructions'],
    ],
    limitMs: 120_000,
    cwd: dirname(dataDir),
    env: serverEnvironment(),
    account,
  });
  if (made.exitCode !== 0) {
    rmSync(part, { recursive: true, force: true });
    throw new DevstackError('POSTGRES_NOT_STARTED', `initdb failed:\n${tailOf(made.output)}`);
  }
  renameSync(part, dataDir);
}

function removeLeftovers(dataDir: string): void {
  const prefix = `${basename(dataDir)}.`;
  for (const name of readdirSync(dirname(dataDir))) {
    if (!name.startsWith(prefix) || readStartToken(Number(name.slice(prefix.length))) !== null)
      continue;
    rmSync(join(dirname(dataDir), name), { recursive: true, force: true });
  }
}

/** Nothing of ours but the way to the programs: a stray PGDATA or PGPORT would steer the server. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}

/** A checkout in a closed home hides `node_modules` from the account as well: then it gets a copy of the programs. */
async function makeBinariesReachable(
  place: DataPlace,
  binaries: PostgresBinaries,
  onProgress: (line: string) => void,
): Promise<string> {
  if (place.account === null || findClosedFolder(binaries.binDir, place.account) === null) {
    return binaries.binDir;
  }
  const copy = join(place.folder, `programs-${binaries.version}`);
  if (!existsSync(copy)) {
    onProgress(
      `the account that runs Postgres cannot enter ${binaries.binDir}: copying it to ${copy}`,
    );
    const part = `${copy}.${process.pid}`;
    rmSync(part, { recursive: true, force: true });
    cpSync(dirname(binaries.binDir), part, { recursive: true, verbatimSymlinks: true });
    await giveTo(part, place.account);
    renameSync(part, copy);
  }
  return join(copy, basename(binaries.binDir));
}

/** The copy has the modes of what it was made of, which close it to anybody but its owner. */
async function giveTo(folder: string, { uid, gid }: Account): Promise<void> {
  const args = ['-R', '-h', `${uid}:${gid}`, folder];
  const given = await runCommand({ command: 'chown', args, limitMs: 60_000 });
  if (given.exitCode === 0) return;
  throw new DevstackError('POSTGRES_NOT_STARTED', `${folder}: ${given.output.trim()}`);
}

function makeFolder(folder: string, account: Account | null): void {
  if (existsSync(folder)) return;
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o700);
  if (account !== null) chownSync(folder, account.uid, account.gid);
}
