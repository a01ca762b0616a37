import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { spawnProcess } from '../../devstack/processes.js';
import type { SpawnedProcess, SpawnProcessOptions } from '../../devstack/processes.js';
import { isAlive, makeFolder, removeFolder } from './support.js';

const READY_AND_WAIT = `
  console.log('{"level":"info"}');
  console.log(JSON.stringify({ ready: true, port: 4711 }));
  setInterval(() => {}, 1000);
`;

let folder: string;

beforeEach(() => {
  folder = makeFolder();
});

afterEach(() => {
  removeFolder(folder);
});

function start(
  source: string,
  changes: Partial<SpawnProcessOptions> = {},
): Promise<SpawnedProcess> {
  const args = ['--input-type=module', '-e', source];
  const base = { name: 'child', command: process.execPath, args, env: {}, cwd: folder };
  return spawnProcess({ ...base, ...changes });
}

test('a child is ready with the line it announces itself by', async () => {
  const lines: string[] = [];
  const child = await start(READY_AND_WAIT, { onLine: (line) => lines.push(line) });
  expect(child.ready).toEqual({ ready: true, port: 4711 });
  expect(lines).toEqual(['{"level":"info"}', '{"ready":true,"port":4711}']);
  expect(await child.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  expect(isAlive(child.pid)).toBe(false);
});

test('what a child prints is appended to its log', async () => {
  const logFile = join(folder, 'child.log');
  const child = await start(`console.error('a warning');${READY_AND_WAIT}`, { logFile });
  await child.stop();
  expect(readFileSync(logFile, 'utf8')).toContain('a warning');
  expect(child.tail()).toContain('a warning');
});

test('a child that ends early is told with its last words', async () => {
  const started = start(`console.error('no database'); process.exit(3);`);
  await expect(started).rejects.toMatchObject({
    code: 'PROCESS_NOT_READY',
    message: expect.stringMatching(
      /^child ended before it was ready \(exit code 3\)\n.*no database/s,
    ) as string,
  });
});

test('a child that never announces itself is ended', async () => {
  const source = `console.log(process.pid); setInterval(() => {}, 1000);`;
  const lines: string[] = [];
  const started = start(source, { readyLimitMs: 1500, onLine: (line) => lines.push(line) });
  await expect(started).rejects.toMatchObject({ code: 'PROCESS_NOT_READY' });
  expect(lines).toHaveLength(1);
  expect(isAlive(Number(lines[0]))).toBe(false);
});

test('a program that is not there is told', async () => {
  const started = start('', { command: join(folder, 'nothing') });
  await expect(started).rejects.toMatchObject({
    code: 'PROCESS_NOT_READY',
    message: expect.stringMatching(/ENOENT/) as string,
  });
});

test('a child that ignores the signal is killed after the limit', async () => {
  const child = await start(`process.on('SIGTERM', () => {});${READY_AND_WAIT}`);
  expect(await child.stop('SIGTERM', 200)).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a child that stops in order ends with its own exit code, and stopping twice is harmless', async () => {
  const child = await start(`process.on('SIGTERM', () => process.exit(0));${READY_AND_WAIT}`);
  expect(await child.stop()).toEqual({ code: 0, signal: null });
  expect(await child.stop()).toEqual({ code: 0, signal: null });
});

test('a killed child tells its end without being asked to stop', async () => {
  const child = await start(READY_AND_WAIT);
  process.kill(child.pid, 'SIGKILL');
  expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
});
