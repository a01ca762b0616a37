import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createCaller, until } from './caller.js';
import type { Caller } from './caller.js';

// Below the project, so that the built files find its packages.
const root = resolve(import.meta.dirname, '../..');
let home = '';
let main = '';

beforeAll(() => {
  mkdirSync(join(root, '.holdfast'), { recursive: true });
  home = mkdtempSync(join(root, '.holdfast', 'simulator-test-'));
  const config = join(home, 'tsconfig.json');
  const compilerOptions = { outDir: join(home, 'dist'), rootDir: root };
  const include = [join(root, 'simulator/**/*.ts')];
  writeFileSync(
    config,
    JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, include, exclude: [] }),
  );
  const built = spawnSync(process.execPath, [
    join(root, 'node_modules/typescript/bin/tsc'),
    '-p',
    config,
  ]);
  expect(built.stdout.toString()).toBe('');
  main = join(home, 'dist/simulator/main.js');
}, 120_000);

afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

type Started = { child: ChildProcess; ready: { ready: boolean; port: number }; caller: Caller };

async function start(...args: readonly string[]): Promise<Started> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  const ready = JSON.parse(line) as { ready: boolean; port: number; url: string };
  return { child, ready, caller: createCaller(ready.url) };
}

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args]);
  return { status, stdout: stdout.toString(), stderr: stderr.toString() };
}

test('a killed provider remembers what it charged and how it was told to answer', async () => {
  const truth = join(home, 'remembers.jsonl');
  const first = await start('--truth', truth, '--price', 'fake-priced=3');
  expect(first.ready).toMatchObject({ ready: true, port: expect.any(Number) as number });
  await first.caller.send({ key: 'a', simulate: { lookup: { finds: 'never' } } });
  await first.caller.send({ key: 'b' });
  const held = first.caller.send({
    key: 'c',
    simulate: { answer: 'late', delay_ms: 3_600_000, charge_at: 'answer' },
  });
  held.catch(() => undefined);
  await until(async () => (await first.caller.truth()).totals.accepted === 3);
  await first.caller.control('clock', { advanceMs: 1_800_000 });
  const before = await first.caller.truth();
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  appendFileSync(truth, '{"event":"charge","id":"half');

  const { caller } = await start('--truth', truth, '--price', 'fake-priced=3');
  const after = await caller.truth();
  expect(after.totals).toMatchObject({ received: 3, accepted: 3, charged: '24' });
  expect(after.requests).toEqual(before.requests);
  expect((await caller.receipt('a')).status).toBe(404);
  expect((await caller.send({ key: 'b' })).headers.get('idempotency-replayed')).toBe('true');
  expect((await caller.receipt('c')).json['status']).toBe('running');
  await caller.control('clock', { advanceMs: 1_800_000 });
  expect((await caller.receipt('c')).json).toMatchObject({ charge: { amount: '12' } });
  expect((await caller.truth()).requests.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
}, 30_000);

test('a provider that is started with a pace lets its jobs tick, and ends with SIGTERM all the same', async () => {
  const args = ['--truth', join(home, 'pace.jsonl'), '--tick-ms', '5', '--price', 'own=2/tick'];
  const { child, caller } = await start(...args);
  await caller.create({ key: 'a', body: { model: 'own', limit: { ticks: 3 } } });
  await caller.create({ key: 'b', body: { limit: { ticks: 1_000_000 } } });
  await until(async () => (await caller.charge('a')).json['final'] === true);
  expect((await caller.charge('a')).json['charge']).toEqual({ amount: '6', unit: 'credit' });
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('SIGTERM ends the process with 0 although a connection is held open', async () => {
  const { child, caller } = await start('--truth', join(home, 'sigterm.jsonl'));
  const held = caller.send({ simulate: { answer: 'never' } });
  held.catch(() => undefined);
  await until(async () => (await caller.truth()).totals.accepted === 1);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  await expect(held).rejects.toThrow();
});

test('SIGTERM ends the process although whoever started it still holds its stdin', async () => {
  const args = ['--end-with-stdin', '--truth', join(home, 'stdin.jsonl')];
  const child = spawn(process.execPath, [main, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  await once(createInterface(child.stdout), 'line');
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('a port in use is one sentence and exit 3', async () => {
  const { ready } = await start('--truth', join(home, 'port.jsonl'));
  const second = run('--truth', join(home, 'port-2.jsonl'), '--port', String(ready.port));
  expect(second).toEqual({
    status: 3,
    stdout: '',
    stderr: `Port ${ready.port} is in use by another process.\n`,
  });
});

test.each([
  [['--truht', 'x'], '--truht'],
  [[], '--truth is missing'],
  [['--truth', 'x', '--port', 'eighty'], '--port eighty'],
  [['--truth', 'x', '--price', 'fake-priced'], '--price fake-priced'],
  [['--truth', 'x', '--price', 'fake-job=1/tock'], '--price fake-job=1/tock'],
  [['--truth', 'x', '--tick-ms', '0'], '--tick-ms 0'],
  [['--truth', 'x', '--tick-ms', 'soon'], '--tick-ms soon'],
])('the flags %j are misuse and exit 2', (args, text) => {
  const { status, stderr } = run(...args);
  expect(status).toBe(2);
  expect(stderr).toContain(text);
});

test('a bill that cannot be read is one sentence and exit 3, and is left as it is', () => {
  const truth = join(home, 'broken.jsonl');
  writeFileSync(truth, '{"event":"charge"}\n');
  const { status, stderr } = run('--truth', truth);
  expect(status).toBe(3);
  expect(stderr).toBe(`Line 1 of ${truth} is not an entry of the bill.\n`);
  expect(readFileSync(truth, 'utf8')).toBe('{"event":"charge"}\n');
});
