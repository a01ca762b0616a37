// Data place
// ----------
// Which folder holds the data, and which account runs the server.
// 1. Postgres refuses to run as root: as root it runs as the account `postgres`, or as whoever owns the data already.
// 2. That account must be able to enter every folder above the data; where it cannot, the data stands in a folder of
//    the system, named after the checkout, so that two checkouts never share one.
// 3. A folder outside the checkout is used only when it is ours: somebody else may have made it first.

import { createHash } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { DevstackError } from '../devstack-error.js';
import { runCommand } from '../machine/run-command.js';

export interface Account {
  uid: number;
  gid: number;
}

export interface DataPlace {
  folder: string;
  /** Null when the server runs as we do. */
  account: Account | null;
}

export interface DataPlaceRequest {
  stateDir: string;
  /** Where a folder may stand instead; the system's cache and temporary directories by default. */
  fallbackRoots?: readonly string[] | undefined;
  onProgress: (line: string) => void;
}

const ACCOUNT_NAME = 'postgres';

/** The folder above all Postgres data of this state folder; it exists afterwards. */
export async function chooseDataPlace(request: DataPlaceRequest): Promise<DataPlace> {
  const wanted = join(resolve(request.stateDir), 'postgres');
  if (process.getuid?.() !== 0) {
    mkdirSync(wanted, { recursive: true });
    return { folder: wanted, account: null };
  }
  const account = ownerOf(wanted) ?? (await findOrCreateAccount(request.onProgress));
  if (findClosedFolder(wanted, account) === null) {
    prepareFolder(wanted, account);
    return { folder: wanted, account };
  }
  const folder = chooseFallback(request, account);
  request.onProgress(
    `the account that runs Postgres cannot enter ${String(findClosedFolder(wanted, account))}: its data is in ${folder}`,
  );
  return { folder, account };
}

function chooseFallback(request: DataPlaceRequest, account: Account): string {
  const name = `holdfast-${checkoutKey(request.stateDir)}`;
  const roots = request.fallbackRoots ?? ['/var/cache', tmpdir(), '/var/tmp', '/tmp'];
  for (const root of roots) {
    const folder = join(root, name, 'postgres');
    if (!existsSync(root) || findClosedFolder(folder, account) !== null) continue;
    if (!isOurs(join(root, name), account) || !isOurs(folder, account)) continue;
    prepareFolder(folder, account);
    return folder;
  }
  throw new DevstackError(
    'POSTGRES_NOT_STARTED',
    `no folder for Postgres's data: as root it runs as another account, which can enter neither ${request.stateDir} ` +
      `nor ${roots.join(', ')}. Make one of them enterable (chmod o+x), or set DATABASE_URL.`,
  );
}

export function checkoutKey(stateDir: string): string {
  return createHash('sha256').update(resolve(stateDir)).digest('hex').slice(0, 16);
}

function isOurs(folder: string, account: Account): boolean {
  const stat = statSync(folder, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 || stat.uid === account.uid;
}

/** Data made by an ordinary user stays that user's when root comes by. */
function ownerOf(folder: string): Account | null {
  const stat = statSync(folder, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 ? null : { uid: stat.uid, gid: stat.gid };
}

/** The first folder on the way to `path` that the account may not enter; missing ones will be made enterable. */
export function findClosedFolder(path: string, account: Account): string | null {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    const stat = statSync(folder, { throwIfNoEntry: false });
    if (stat !== undefined && !mayEnter(stat, account)) return folder;
    if (folder === dirname(folder)) return null;
  }
}

function mayEnter(stat: { uid: number; gid: number; mode: number }, account: Account): boolean {
  if (stat.uid === account.uid) return (stat.mode & 0o100) !== 0;
  if (stat.gid === account.gid) return (stat.mode & 0o010) !== 0;
  return (stat.mode & 0o001) !== 0;
}

/** The last folder belongs to the account; those that had to be made on the way are enterable whatever the umask. */
function prepareFolder(folder: string, account: Account): void {
  const missing: string[] = [];
  for (let above = dirname(folder); !existsSync(above); above = dirname(above)) missing.push(above);
  for (const above of missing.reverse()) {
    mkdirSync(above);
    chmodSync(above, 0o755);
  }
  if (existsSync(folder)) return;
  mkdirSync(folder);
  chmodSync(folder, 0o700);
  chownSync(folder, account.uid, account.gid);
}

async function findOrCreateAccount(onProgress: (line: string) => void): Promise<Account> {
  const found = await lookUpAccount();
  if (found !== null) return found;
  onProgress(
    `creating the system account \`${ACCOUNT_NAME}\`, because Postgres does not run as root`,
  );
  const made = await runCommand({
    command: 'useradd',
    args: ['--system', '--user-group', '--no-create-home', ACCOUNT_NAME],
    limitMs: 20_000,
  });
  const account = await lookUpAccount();
  if (account !== null) return account;
  throw new DevstackError(
    'POSTGRES_NOT_STARTED',
    `Postgres does not run as root, and the account \`${ACCOUNT_NAME}\` could not be created: ${made.output.trim()}`,
  );
}

async function lookUpAccount(): Promise<Account | null> {
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map((flag) =>
      runCommand({ command: 'id', args: [flag, ACCOUNT_NAME], limitMs: 10_000 }),
    ),
  );
  if (uid?.exitCode !== 0 || gid?.exitCode !== 0) return null;
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}
