import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCheckout, type Checkout } from './checkout.js';

let checkout: Checkout;

beforeEach(() => {
  checkout = createCheckout();
  checkout.write('domain/one.ts', 'export const one = 1;\n');
});

afterEach(() => {
  checkout.dispose();
});

const lock = '.holdfast/bootstrap.lock';

test('three at once build once, and all of them find it built', async () => {
  const ended = await Promise.all([1, 2, 3].map(() => checkout.bootstrap()));
  expect(ended.map(({ code }) => code)).toEqual([0, 0, 0]);
  const built = ended.filter(({ stderr }) => stderr.includes('compiling 1 files took'));
  expect(built).toHaveLength(1);
  expect(checkout.has(lock)).toBe(false);
});

test('the lock of a process that died is taken over by one heir', async () => {
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  checkout.write(`${lock}/${pid}-abc`, '');
  const ended = await Promise.all([checkout.bootstrap(), checkout.bootstrap()]);
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  expect(ended.filter(({ stderr }) => stderr.includes('compiling'))).toHaveLength(1);
  expect(checkout.has(lock)).toBe(false);
});

test('a lock that was left without an owner does not stop anybody', async () => {
  checkout.write(`${lock}/1-abc`, '');
  checkout.remove(`${lock}/1-abc`);
  expect((await checkout.bootstrap()).code).toBe(0);
});

test('the lock of a process that runs is waited for, and the wait is said', async () => {
  checkout.write(`${lock}/${process.pid}-abc`, '');
  const waiting = checkout.bootstrap();
  await new Promise((wake) => setTimeout(wake, 3_000));
  expect(checkout.has('dist')).toBe(false);
  checkout.remove(lock);
  const ended = await waiting;
  expect(ended.code).toBe(0);
  expect(ended.stderr).toContain(`waiting for process ${process.pid}`);
  expect(checkout.has('dist/domain/one.js')).toBe(true);
});
