import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTemporal } from '../../devstack/temporal.js';
import type { StartTemporalOptions, TemporalServer } from '../../devstack/temporal.js';
import {
  compileDevstack,
  endLeftServers,
  ignoreProgress,
  isAlive,
  makeFolder,
  removeFolder,
  runUntilFirstLineAndKill,
} from './support.js';

const SEARCH_ATTRIBUTES = { HoldfastState: 'Keyword', HoldfastUnknownSince: 'Datetime' } as const;

let folder: string;
let started: TemporalServer[];

beforeEach(() => {
  folder = makeFolder();
  started = [];
});

afterEach(async () => {
  for (const server of started) await server.stop();
  await endLeftServers();
  removeFolder(folder);
});

async function start(changes: Partial<StartTemporalOptions> = {}): Promise<TemporalServer> {
  const server = await startTemporal({
    stateDir: folder,
    onProgress: ignoreProgress,
    searchAttributes: SEARCH_ATTRIBUTES,
    ...changes,
  });
  started.push(server);
  return server;
}

async function withClient<T>(address: string, use: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await use(new Client({ connection }));
  } finally {
    await connection.close();
  }
}

/** Starts a workflow that no worker takes and reads its search attribute back. */
function startWithState(address: string, workflowId: string): Promise<string | undefined> {
  const state = defineSearchAttributeKey('HoldfastState', SearchAttributeType.KEYWORD);
  return withClient(address, async (client) => {
    const handle = await client.workflow.start('llmCall', {
      workflowId,
      taskQueue: 'nobody',
      typedSearchAttributes: [{ key: state, value: 'held' }],
    });
    return (await handle.describe()).typedSearchAttributes.get(state);
  });
}

function starterSource(compiled: string): string {
  return `
    import { startTemporal } from '${compiled}/devstack/temporal.js';
    const options = { stateDir: '${folder}', searchAttributes: { HoldfastState: 'Keyword' } };
    const server = await startTemporal({ ...options, onProgress: () => {} });
    console.log(JSON.stringify(server));
    setInterval(() => {}, 1000);
  `;
}

test('the server answers, its search attributes work at once, and stopping ends its process', async () => {
  const server = await start({ inMemory: true, fastTimers: true });
  expect(server).toMatchObject({ given: false, namespace: 'default' });
  expect(server.version).toMatch(/^1\.\d+\.\d+/);
  expect(await startWithState(server.address, 'op-1')).toBe('held');
  expect(isAlive(server.pid)).toBe(true);
  await server.stop();
  await server.stop();
  expect(isAlive(server.pid)).toBe(false);
  expect(readdirSync(join(folder, 'temporal'))).toEqual([]);
});

test('the web pages are served where the server says', async () => {
  const server = await start({ inMemory: true });
  const response = await fetch(String(server.uiUrl));
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('<html');
});

test('workflows survive a stop and a start on the same port', async () => {
  const first = await start();
  await startWithState(first.address, 'op-1');
  await first.stop();
  const second = await start({ port: Number(first.address.split(':')[1]) });
  expect(second.address).toBe(first.address);
  const status = await withClient(second.address, async (client) => {
    const description = await client.workflow.getHandle('op-1').describe();
    return description.status.name;
  });
  expect(status).toBe('RUNNING');
});

test('a server left by a killed starter is recognised and stopped, and its workflows survive', async () => {
  const compiled = compileDevstack(folder);
  const left = (await runUntilFirstLineAndKill(folder, starterSource(compiled))) as TemporalServer;
  expect(isAlive(left.pid)).toBe(true);
  await startWithState(left.address, 'op-1');
  const lines: string[] = [];
  const server = await start({ onProgress: (line) => lines.push(line) });
  expect(isAlive(left.pid)).toBe(false);
  expect(lines.join('\n')).toContain(`stopping Temporal (process ${String(left.pid)})`);
  await withClient(server.address, (client) => client.workflow.getHandle('op-1').describe());
});

test('a server whose starter lives keeps its file to itself, and one in memory stands beside it', async () => {
  const first = await start();
  await expect(start()).rejects.toMatchObject({ code: 'ALREADY_RUNNING' });
  const second = await start({ inMemory: true });
  expect(second.address).not.toBe(first.address);
  expect([isAlive(first.pid), isAlive(second.pid)]).toEqual([true, true]);
});

test('two checkouts side by side do not stop each other’s server', async () => {
  const one = await start({ stateDir: join(folder, 'one') });
  const two = await start({ stateDir: join(folder, 'two') });
  await one.stop();
  expect(await startWithState(two.address, 'op-1')).toBe('held');
});

test('a given server is neither asked nor stopped', async () => {
  const given = await start({ temporalAddress: 'temporal.example:7233' });
  expect(given).toMatchObject({ address: 'temporal.example:7233', given: true, pid: null });
  await given.stop();
  expect(existsSync(join(folder, 'temporal'))).toBe(false);
});

test('a server that cannot start tells the last words of its log and leaves no process', async () => {
  const taken = await start({ inMemory: true });
  const port = Number(taken.address.split(':')[1]);
  const stateDir = join(folder, 'other');
  await expect(start({ stateDir, port })).rejects.toMatchObject({
    code: 'TEMPORAL_NOT_STARTED',
    message: expect.stringMatching(/ended at once\n.+/) as string,
  });
  expect(readdirSync(join(stateDir, 'temporal'))).not.toContain('server.json');
  expect(isAlive(taken.pid)).toBe(true);
});

test('a start that failed once, as when a port was just taken, is tried again with other ports', async () => {
  const real = (await start({ inMemory: true })).binaryPath;
  const mark = join(folder, 'failed-once');
  const script = join(folder, 'bin', 'temporal');
  mkdirSync(join(folder, 'bin'));
  writeFileSync(
    script,
    `#!/bin/sh
if [ "$1" != --version ] && [ ! -e ${mark} ]; then echo "$@" > ${mark}; exit 1; fi
exec ${String(real)} "$@"
`,
  );
  chmodSync(script, 0o755);
  const searchPath = `${join(folder, 'bin')}:${String(process.env['PATH'])}`;
  const server = await start({ inMemory: true, searchPath });
  expect(readFileSync(mark, 'utf8')).not.toContain(
    `--port ${String(server.address.split(':')[1])} `,
  );
  expect(isAlive(server.pid)).toBe(true);
});
