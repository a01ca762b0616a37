import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { messageOf } from '../devstack-error.js';
import { isListener } from '../machine/ports.js';

export type Serving = { status: 'serving'; version: string } | { status: 'failed'; reason: string };

const HOST = '127.0.0.1';
const NOT_LISTENING: Serving = { status: 'failed', reason: 'it does not listen' };
const LIMIT_MS = 60_000;
const CALL_LIMIT_MS = 5_000;
const SERVICE = 'temporal.api.workflowservice.v1.WorkflowService';

/** Until the server says SERVING and its namespace `default` exists. */
export async function waitUntilServing(
  port: number,
  pid: number,
  hasExited: () => boolean,
): Promise<Serving> {
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    if (hasExited()) return { status: 'failed', reason: 'it ended at once' };
    const asked = isListener(pid, port) === false ? NOT_LISTENING : await ask(port);
    if (asked.status === 'serving') return asked;
    if (performance.now() > deadline) {
      return { status: 'failed', reason: `not serving after ${LIMIT_MS} ms: ${asked.reason}` };
    }
    await sleep(20);
  }
}

async function ask(port: number): Promise<Serving> {
  const address = `${HOST}:${port}`;
  // gRPC waits a second after a refused connection, so it is not asked before the port is open.
  if (!(await isListening(port))) return NOT_LISTENING;
  try {
    const connection = await Connection.connect({ address, connectTimeout: CALL_LIMIT_MS });
    try {
      return await connection.withDeadline(Date.now() + CALL_LIMIT_MS, () => askOpen(connection));
    } finally {
      await connection.close();
    }
  } catch (error) {
    return { status: 'failed', reason: messageOf(error) };
  }
}

async function askOpen(connection: Connection): Promise<Serving> {
  const health = await connection.healthService.check({ service: SERVICE });
  // 1 is SERVING in gRPC's health protocol.
  const status: number = health.status;
  if (status !== 1) return { status: 'failed', reason: `its health is ${status}` };
  await connection.workflowService.describeNamespace({ namespace: 'default' });
  const system = await connection.workflowService.getSystemInfo({});
  return { status: 'serving', version: system.serverVersion };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}
