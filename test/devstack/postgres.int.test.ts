import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startPostgres } from '../../devstack/postgres.js';
import type { PostgresServer, StartPostgresOptions } from '../../devstack/postgres.js';
import {
  compileDevstack,
  endLeftServers,
  ignoreProgress,
  isAlive,
  makeFolder,
  removeFolder,
  runUntilFirstLineAndKill,
} from './support.js';

let folder: string;
let stateDir: string;
let started: PostgresServer[];

beforeEach(() => {
  folder = makeFolder();
  stateDir = join(folder, '.holdfast');
  started = [];
});

afterEach(async () => {
  for (const server of started) await server.stop();
  await endLeftServers();
  removeFolder(folder);
});

async function start(changes: Partial<StartPostgresOptions> = {}): Promise<PostgresServer> {
  const server = await startPostgres({ stateDir, onProgress: ignoreProgress, ...changes });
  started.push(server);
  return server;
}

async function ask(url: string, text: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const answer = await client.query<{ answer: unknown }>(`select (${text})::text as answer`);
    return String(answer.rows[0]?.answer);
  } finally {
    await client.end();
  }
}

async function run(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** A starter that does what a killed main process did: it starts Postgres and leaves it. */
function starterSource(compiled: string): string {
  return `
    import { startPostgres } from '${compiled}/devstack/postgres.js';
    const server = await startPostgres({ stateDir: '${stateDir}', onProgress: () => {} });
    console.log(JSON.stringify(server));
    setInterval(() => {}, 1000);
  `;
}

test.each([
  ['system', /^1[4-8]\./],
  ['embedded', /^18\./],
] as const)('the %s Postgres starts, answers and stops', async (flavour, versions) => {
  const server = await start({ flavour });
  expect(server.version).toMatch(versions);
  expect(server).toMatchObject({ host: '127.0.0.1', given: false });
  expect(await ask(server.adminUrl, 'select version()')).toContain(server.version.split(' ')[0]);
  expect(isAlive(server.pid)).toBe(true);
  await server.stop();
  await server.stop();
  expect(isAlive(server.pid)).toBe(false);
});

test.each(['system', 'embedded'] as const)(
  'the %s Postgres is durable, lets 200 in and asks for a password',
  async (flavour) => {
    const { adminUrl } = await start({ flavour });
    const names = ['fsync', 'synchronous_commit', 'full_page_writes', 'max_connections'];
    const settings = names.map((name) => `current_setting('${name}')`).join(` || ' ' || `);
    expect(await ask(adminUrl, settings)).toBe('on on on 200');
    expect(await ask(adminUrl, `current_setting('listen_addresses')`)).toBe('127.0.0.1');
    const wrong = new URL(adminUrl);
    wrong.password = 'guess';
    await expect(ask(wrong.toString(), '1')).rejects.toMatchObject({ code: '28P01' });
  },
);

test('data survives a stop and a start, under the same password', async () => {
  const first = await start();
  await run(first.adminUrl, 'create table kept as select 60 as held_amount');
  await first.stop();
  const second = await start();
  expect(await ask(second.adminUrl, 'select held_amount from kept')).toBe('60');
  expect(new URL(second.adminUrl).password).toBe(new URL(first.adminUrl).password);
});

test('only the server’s account reads the password file', async () => {
  const { dataDir } = await start();
  expect(statSync(join(String(dataDir), '..', 'password')).mode & 0o777).toBe(0o600);
});

test('data written by one version is served by that version again', async () => {
  const embedded = await start({ flavour: 'embedded' });
  await embedded.stop();
  expect((await start()).version).toMatch(/^18\./);
});

test('a server left by a killed starter is recognised and stopped, and its data survives', async () => {
  const compiled = compileDevstack(folder);
  const left = (await runUntilFirstLineAndKill(folder, starterSource(compiled))) as PostgresServer;
  expect(isAlive(left.pid)).toBe(true);
  await run(left.adminUrl, 'create table kept as select 60 as held_amount');
  const lines: string[] = [];
  const server = await start({ onProgress: (line) => lines.push(line) });
  expect(isAlive(left.pid)).toBe(false);
  expect(lines.join('\n')).toContain(`stopping Postgres (process ${String(left.pid)})`);
  expect(await ask(server.adminUrl, 'select held_amount from kept')).toBe('60');
});

test('a server whose record is lost is recognised by its data folder', async () => {
  const compiled = compileDevstack(folder);
  const left = (await runUntilFirstLineAndKill(folder, starterSource(compiled))) as PostgresServer;
  unlinkSync(join(String(left.dataDir), '..', 'server.json'));
  const server = await start();
  expect([isAlive(left.pid), isAlive(server.pid)]).toEqual([false, true]);
});

test('a server whose starter lives is in use and is not touched', async () => {
  const first = await start();
  await expect(start()).rejects.toMatchObject({
    code: 'ALREADY_RUNNING',
    message: expect.stringContaining(`process ${process.pid} runs Postgres`) as string,
  });
  expect(await ask(first.adminUrl, '1')).toBe('1');
});

test('a process that has the id in an old record or pid file is not touched', async () => {
  const first = await start();
  await first.stop();
  const dataDir = String(first.dataDir);
  // A program of the server's own account stands where the postmaster of an earlier boot stood.
  const { uid, gid } = statSync(dataDir);
  const stranger = spawn('sleep', ['600'], { stdio: 'ignore', uid, gid });
  try {
    const pid = Number(stranger.pid);
    const gone = { pid, startToken: 'an earlier moment' };
    const record = { server: gone, owner: gone, port: 1 };
    writeFileSync(join(dataDir, '..', 'server.json'), JSON.stringify(record));
    writeFileSync(join(dataDir, 'postmaster.pid'), `${pid}\n${dataDir}\n1\n5432\n\n\n`);
    const second = await start();
    expect(await ask(second.adminUrl, '1')).toBe('1');
    expect(isAlive(pid)).toBe(true);
  } finally {
    stranger.kill('SIGKILL');
  }
});

test('two checkouts side by side have their own servers and do not stop each other’s', async () => {
  const one = await start({ stateDir: join(folder, 'one', '.holdfast') });
  const two = await start({ stateDir: join(folder, 'two', '.holdfast') });
  expect(one.port).not.toBe(two.port);
  expect(one.dataDir).not.toBe(two.dataDir);
  await one.stop();
  expect(await ask(two.adminUrl, '1')).toBe('1');
});

test('a given server is used as it is and survives our stop', async () => {
  const own = await start();
  const given = await start({ databaseAdminUrl: own.adminUrl });
  expect(given).toMatchObject({ given: true, pid: null, dataDir: null, port: own.port });
  await given.stop();
  expect(await ask(own.adminUrl, '1')).toBe('1');
});

test('a given server that does not answer is told without its password', async () => {
  const error = await start({ databaseAdminUrl: 'postgresql://u:geheim@127.0.0.1:1/x' }).catch(
    String,
  );
  expect(error).toContain('127.0.0.1:1 does not answer');
  expect(error).not.toContain('geheim');
});

test('a server that cannot start tells the last words of its log', async () => {
  const first = await start();
  await first.stop();
  writeFileSync(join(String(first.dataDir), 'postgresql.conf'), 'no_such_setting = 1\n');
  await expect(start()).rejects.toMatchObject({
    code: 'POSTGRES_NOT_STARTED',
    message: expect.stringContaining('no_such_setting') as string,
  });
});

test('a given port is kept over a restart', async () => {
  const first = await start();
  await first.stop();
  expect((await start({ port: first.port })).port).toBe(first.port);
});

test('a half-made cluster of a killed start is thrown away', async () => {
  const first = await start();
  await first.stop();
  const leftover = `${String(first.dataDir)}.4194305`;
  removeFolder(String(first.dataDir));
  writeFileSync(leftover, 'half');
  const second = await start();
  expect([existsSync(leftover), isAlive(second.pid)]).toEqual([false, true]);
  expect(readFileSync(join(String(second.dataDir), 'PG_VERSION'), 'utf8').trim()).not.toBe('');
});
