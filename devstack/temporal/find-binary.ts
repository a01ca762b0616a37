// Temporal binary
// ---------------
// The program `temporal` from the first place that has it: the PATH, the cache, the ways to fetch it.
// 1. One on the PATH is used when its server is new enough.
// 2. One in the cache is used when its SHA-256 is the recorded one; otherwise it is as if it were not there.
// 3. Every way that failed says why, and the last word is three commands to choose from.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { DevstackError } from '../devstack-error.js';
import { sha256Of } from '../fetch-verified.js';
import { runCommand } from '../machine/run-command.js';
import { readTextIfThere } from '../machine/state-file.js';
import { cachedBinaryPath } from './cached-path.js';
import { FETCH_WAYS } from './fetch-binary.js';
import type { FetchWay } from './fetch-binary.js';
import { CLI_VERSION, GO_CLI_VERSION, recordedSha256, SERVER_VERSION_MIN } from './releases.js';

export interface TemporalBinary {
  path: string;
  /** Of the server in it. */
  version: string;
}

export interface TemporalBinarySearch {
  stateDir: string;
  onProgress: (line: string) => void;
  /** In order of preference. By default the user's cache, which serves fresh clones too, then the state folder's. */
  cacheDirs?: readonly string[] | undefined;
  /** In the form of PATH, and by default this process's PATH. */
  searchPath?: string | undefined;
  /** What is tried when no place has it; all ways by default, none when offline. */
  ways?: readonly FetchWay[] | undefined;
}

export async function findTemporalBinary(search: TemporalBinarySearch): Promise<TemporalBinary> {
  const refusals: string[] = [];
  const cacheDirs = search.cacheDirs ?? defaultCacheDirs(search.stateDir);
  const found = (await findOnPath(search, refusals)) ?? (await findInCache(cacheDirs, refusals));
  if (found !== null) return found;
  for (const way of search.ways ?? FETCH_WAYS) {
    search.onProgress(`Temporal: ${way.description}`);
    const fetched = await way.fetch({ cacheDirs, onProgress: search.onProgress });
    if (fetched.status === 'fetched') {
      const binary = await inspectBinary(fetched.path);
      if (binary.status === 'usable') return binary.binary;
      refusals.push(`${way.name}: ${binary.reason}`);
    } else {
      refusals.push(`${way.name}: ${fetched.reason}`);
    }
    search.onProgress(`Temporal: ${refusals.at(-1) ?? way.name}`);
  }
  throw new DevstackError('TEMPORAL_NOT_FOUND', notFoundMessage(refusals));
}

export function defaultCacheDirs(stateDir: string): string[] {
  return [join(homedir(), '.cache', 'holdfast'), join(stateDir, 'cache')];
}

function notFoundMessage(refusals: readonly string[]): string {
  return [
    'No Temporal server program was found, and none could be fetched:',
    ...refusals.map((refusal) => `  - ${refusal.replaceAll('\n', '\n    ')}`),
    'Choose one, with `temporal` on the PATH afterwards or a server of yours:',
    '  brew install temporal                                            # or docs.temporal.io/cli',
    `  go install github.com/temporalio/cli/cmd/temporal@v${GO_CLI_VERSION}`,
    '  export TEMPORAL_ADDRESS=host:7233                                # a server you have already',
  ].join('\n');
}

async function findOnPath(
  search: TemporalBinarySearch,
  refusals: string[],
): Promise<TemporalBinary | null> {
  const folders = (search.searchPath ?? process.env['PATH'] ?? '').split(delimiter);
  const name = process.platform === 'win32' ? 'temporal.exe' : 'temporal';
  for (const folder of folders.filter((part) => part !== '')) {
    const path = join(folder, name);
    if (!existsSync(path)) continue;
    const inspected = await inspectBinary(path);
    if (inspected.status === 'usable') return inspected.binary;
    refusals.push(`${path}: ${inspected.reason}`);
    search.onProgress(`Temporal: ${path} is not used: ${inspected.reason}`);
  }
  return null;
}

async function findInCache(
  cacheDirs: readonly string[],
  refusals: string[],
): Promise<TemporalBinary | null> {
  for (const cacheDir of cacheDirs) {
    for (const version of [CLI_VERSION, GO_CLI_VERSION]) {
      const path = cachedBinaryPath(cacheDir, version);
      if (!existsSync(path)) continue;
      const wanted = recordedSha256(version) ?? readTextIfThere(`${path}.sha256`)?.trim();
      if ((await sha256Of(path)) !== wanted) {
        refusals.push(`${path}: its SHA-256 is not the recorded one`);
        continue;
      }
      const inspected = await inspectBinary(path);
      if (inspected.status === 'usable') return inspected.binary;
      refusals.push(`${path}: ${inspected.reason}`);
    }
  }
  return null;
}

type Inspected =
  { status: 'usable'; binary: TemporalBinary } | { status: 'unusable'; reason: string };

async function inspectBinary(path: string): Promise<Inspected> {
  const answer = await runCommand({ command: path, args: ['--version'], limitMs: 20_000 });
  const version = /Server (\d+\.\d+\.\d+)/.exec(answer.stdout)?.[1];
  if (version === undefined) {
    return { status: 'unusable', reason: `it does not tell its version: ${answer.output.trim()}` };
  }
  if (!isVersionAtLeast(version, SERVER_VERSION_MIN)) {
    return {
      status: 'unusable',
      reason: `its server is ${version}, and ${SERVER_VERSION_MIN} is needed`,
    };
  }
  return { status: 'usable', binary: { path, version } };
}

export function isVersionAtLeast(version: string, least: string): boolean {
  const [have, want] = [version, least].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index += 1) {
    const difference = (have?.[index] ?? 0) - (want?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
