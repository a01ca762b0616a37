import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findFreePort, isListener, isPortFree } from '../../devstack/machine/ports.js';

const server = createServer();
let port: number;

beforeEach(async () => {
  port = await findFreePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
});

test('ports are handed out once each, below those the system hands out by itself', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, findFreePort));
  expect(new Set(ports).size).toBe(200);
  expect(ports.filter((found) => found < 20_000 || found >= 32_000)).toEqual([]);
});

test('a port somebody listens on is not free', async () => {
  expect(await isPortFree(port)).toBe(false);
  await new Promise((resolve) => server.close(resolve));
  expect(await isPortFree(port)).toBe(true);
});

test.runIf(process.platform === 'linux')('who listens on a port is known', async () => {
  expect(isListener(process.pid, port)).toBe(true);
  expect(isListener(process.pid, await findFreePort())).toBe(false);
  expect(isListener(process.ppid, port)).toBe(false);
  expect(isListener(2 ** 22 + 1, port)).toBe(false);
});
