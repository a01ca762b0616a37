// A caller in a process of its own: reads its order, says that it is ready, and asks at the word.

import { createInterface } from 'node:readline';
import { Client, Connection } from '@temporalio/client';
import { createHoldfastClient } from '../../client/holdfast-client.js';
import type { AdmitAnswer, OperationInput } from '../../client/operation-handle.js';

export interface CallerOrder {
  readonly temporalAddress: string;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly input: OperationInput;
}

export interface CallerWord {
  readonly ready: true;
  readonly askedAtMs: number;
  readonly verdict: AdmitAnswer;
}

const say = (word: object): void => {
  process.stdout.write(`${JSON.stringify(word)}\n`);
};

async function main(): Promise<void> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  say({ ready: true });
  const order = JSON.parse(String((await lines.next()).value)) as CallerOrder;
  const connection = await Connection.connect({ address: order.temporalAddress });
  const client = new Client({ connection, namespace: order.namespace });
  const holdfast = createHoldfastClient({ client, taskQueue: order.taskQueue });
  const call = 'bound' in order.input ? holdfast.job(order.input) : holdfast.call(order.input);
  // A first round trip, so that the connection is warm when the word comes.
  await connection.workflowService.getSystemInfo({});
  say({ ready: true });
  await lines.next();
  const askedAtMs = performance.timeOrigin + performance.now();
  const word: CallerWord = {
    ready: true,
    askedAtMs,
    verdict: await call.admit({ timeoutMs: 30_000 }),
  };
  say(word);
  await connection.close();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
