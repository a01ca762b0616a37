// What a supervised call costs beside what bare Temporal costs, alternating on the same server.

import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { noTelemetry } from '../activities/telemetry.js';
import { DEFAULT_TIMINGS } from '../domain/route.js';
import { createMeteredProvider } from '../providers/metered/metered-provider.js';
import { createSimulator } from '../simulator/create-simulator.js';
import { startWorker } from '../worker/worker.js';
import { measure, printRow } from './measure.js';
import { openStand, ROUTE } from './stand.js';

const ROUND_MS = 6_000;
const QUEUE = 'bench';

export async function benchSupervisedCall(): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const stand = await openStand(1, 20);
  const simulator = createSimulator({ truthFile: join(stand.workDir, 'truth.jsonl') });
  const { url } = await simulator.listen();
  const { address } = stand.devstack.temporal;
  const supervised = await startWorker({
    temporal: { address },
    namespace: 'default',
    taskQueue: 'holdfast',
    shutdownGraceMs: 2_000,
    dependencies: {
      ledger: stand.ledger,
      logger: pino({ level: 'silent' }),
      telemetry: noTelemetry,
      providers: new Map([
        ['metered', createMeteredProvider({ name: 'metered', baseUrl: url, apiKey: 'any' })],
      ]),
      routes: new Map([
        [
          ROUTE,
          {
            route: ROUTE,
            provider: 'metered',
            model: ROUTE,
            kind: 'call' as const,
            maxTokensMax: 100,
            paidAttemptsPerSend: 1,
            timings: DEFAULT_TIMINGS,
            fallbacks: [],
            fallbackWhileUnknown: 'wait',
            fallbackHold: 'each',
            sameRouteAttempts: 1,
          },
        ],
      ]),
    },
  });
  const connection = await NativeConnection.connect({ address });
  const bare = await Worker.create({
    connection,
    taskQueue: QUEUE,
    workflowsPath: fileURLToPath(new URL('./workflows.js', import.meta.url)),
    activities: { step: (name: string) => Promise.resolve(name) },
  });
  const running = bare.run();
  const client = new Client({ connection: await Connection.connect({ address }) });
  const near = new Client({ connection: supervised.connection });
  for (const callers of [1, 16]) await compare(client, near, callers);
  bare.shutdown();
  await running;
  await connection.close();
  await client.connection.close();
  supervised.shutdown();
  await supervised.finished;
  await simulator.close();
  await stand.close();
}

async function compare(client: Client, near: Client, callers: number): Promise<void> {
  const plain = (type: string) => (no: number) =>
    client.workflow.execute(type, {
      taskQueue: QUEUE,
      workflowId: `${type}-${callers}-${no}`,
      args: [],
    });
  const call = (no: number): Promise<unknown> =>
    near.workflow.execute('llmCall', {
      requestEagerStart: true,
      taskQueue: 'holdfast',
      workflowId: `call/account-0/${callers}-${no}`,
      args: [
        {
          accountId: 'account-0',
          route: ROUTE,
          maxTokens: 1,
          request: { messages: [{ role: 'user', content: 'x' }] },
        },
      ],
    });
  const empty = await measure(callers, ROUND_MS, plain('empty'));
  const bare = await measure(callers, ROUND_MS, plain('bare'));
  const supervised = await measure(callers, ROUND_MS, call);
  const history = await client.workflow.getHandle(`call/account-0/${callers}-1`).fetchHistory();
  for (const [workflow, measured] of Object.entries({ empty, bare, llmCall: supervised })) {
    printRow({
      bench: 'supervised-call',
      workflow,
      callers,
      perSecond: measured.perSecond,
      p50Ms: measured.p50Ms,
      p99Ms: measured.p99Ms,
    });
  }
  printRow({
    bench: 'supervised-call',
    callers,
    llmCallToBare: Math.round((supervised.perSecond / bare.perSecond) * 100) / 100,
    events: history.events?.length ?? 0,
    workerMegabytes: Math.round(process.memoryUsage().rss / 1e6),
  });
}
