import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { messageOf } from '../devstack-error.js';

export type Serving = { status: 'serving'; version: string } | { status: 'failed'; reason: string };

const LIMIT_MS = 60_000;
const CALL_LIMIT_MS = 5_000;
const SERVICE = 'temporal.api.workflowservice.v1.WorkflowService';

/** Until the server says SERVING and its namespace `default` exists. */
export async function waitUntilServing(
  address: string,
  hasExited: () => boolean,
): Promise<Serving> {
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    if (hasExited()) return { status: 'failed', reason: 'it ended at once' };
    const asked = await ask(address);
    if (asked.status === 'serving') return asked;
    if (performance.now() > deadline) {
      return { status: 'failed', reason: `not serving after ${LIMIT_MS} ms: ${asked.reason}` };
    }
    await sleep(20);
  }
}

async function ask(address: string): Promise<Serving> {
  // gRPC waits a second after a refused connection, so it is not asked before the port is open.
  if (!(await isListening(address))) return { status: 'failed', reason: 'nobody listens' };
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

function isListening(address: string): Promise<boolean> {
  const [host = '127.0.0.1', port] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}
