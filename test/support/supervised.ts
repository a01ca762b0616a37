// A worker in this process, the simulator in another, and a ledger of its own: what a flow test
// needs to start supervised calls.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import pino from 'pino';
import { inject } from 'vitest';
import type { OperationResult } from '../../domain/operation-result.js';
import { noTelemetry, type Telemetry } from '../../activities/telemetry.js';
import type { RouteSettings, RouteTimings } from '../../domain/route.js';
import { amount } from '../../domain/money.js';
import { createAccount, createBudget, setPrice } from '../../ledger/administer.js';
import { createOpenAiChatProvider } from '../../providers/openai-chat/openai-chat-provider.js';
import { createMeteredJobsProvider } from '../../providers/metered-jobs/metered-jobs-provider.js';
import { createMeteredProvider } from '../../providers/metered/metered-provider.js';
import {
  createProviderControl,
  type ProviderControl,
} from '../../scenario-runner/play/provider-control.js';
import { createSimulator } from '../../simulator/create-simulator.js';
import { type RunningWorker, startWorker } from '../../worker/worker.js';
import { createTestLedger, type TestLedger } from './ledger-database.js';

const SHORT_TIMINGS: RouteTimings = {
  dispatchLimitMs: 800,
  heartbeatMs: 1_000,
  dispatchBeforeMs: 60_000,
  questionFirstMs: 150,
  questionMaxMs: 1_000,
};

export interface Supervised {
  readonly books: TestLedger;
  readonly temporal: Client;
  readonly provider: ProviderControl;
  readonly accountId: string;
  /** What the worker knows of its routes; changing it is a new configuration. */
  readonly routes: Map<string, RouteSettings>;
  /** Starts a call with nothing but Temporal's own client. */
  start(
    operationId: string,
    input?: object,
    options?: { readonly startDelay?: number },
  ): Promise<WorkflowHandle<() => Promise<OperationResult>>>;
  /** Starts a job in the same way. */
  startJob(
    operationId: string,
    input?: object,
  ): Promise<WorkflowHandle<() => Promise<OperationResult>>>;
  close(): Promise<void>;
}

export interface SupervisedOptions {
  readonly label: string;
  readonly limit?: bigint;
  readonly routes?: Partial<Omit<RouteSettings, 'kind'>>;
  readonly telemetry?: Telemetry;
}

export async function superviseFor(options: SupervisedOptions): Promise<Supervised> {
  const books = await createTestLedger(options.label);
  const simulator = createSimulator({
    truthFile: join(mkdtempSync(join(tmpdir(), 'truth-')), 'truth.jsonl'),
  });
  const { url } = await simulator.listen();
  const { ledger } = books;
  const account = `acme-${process.pid}-${Date.now()}`;
  await createAccount(ledger, { accountId: account });
  await createBudget(ledger, {
    budgetId: 'team-a',
    unit: 'credit',
    limitAmount: amount(options.limit ?? 100n),
    scopes: [{ kind: 'account', value: account }],
  });
  for (const [route, rate] of [
    ['fake-priced', 1n],
    ['fake-fallback', 2n],
    ['plain', 1n],
    ['repeated', 1n],
  ] as const) {
    await setPrice(ledger, {
      route,
      unit: 'credit',
      rates: [
        { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'input_tokens', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'output_tokens', rateAmount: amount(rate), perCount: 1n },
      ],
    });
  }
  await setPrice(ledger, {
    route: 'fake-job',
    unit: 'credit',
    rates: [
      { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
      { dimension: 'ticks', rateAmount: amount(1n), perCount: 1n },
    ],
  });
  const route = (name: string, fallbacks: string[]): [string, RouteSettings] => [
    name,
    {
      route: name,
      provider: 'metered',
      model: name,
      kind: 'call',
      maxTokensMax: 1_000,
      paidAttemptsPerSend: 1,
      timings: SHORT_TIMINGS,
      fallbacks,
      fallbackWhileUnknown: 'wait',
      fallbackHold: 'each',
      sameRouteAttempts: 1,
      ...options.routes,
    },
  ];
  const metered = { baseUrl: url, apiKey: 'simulator' };
  const jobs: RouteSettings = {
    ...{ route: 'fake-job', provider: 'jobs', model: 'fake-job' },
    ...{ kind: 'job', boundMax: { ticks: 100 }, paidAttemptsPerSend: 1, timings: SHORT_TIMINGS },
    ...{ fallbacks: [], fallbackWhileUnknown: 'wait', fallbackHold: 'each', sameRouteAttempts: 1 },
    ...options.routes,
  };
  const routes = new Map<string, RouteSettings>([
    ['fake-job', jobs],
    route('fake-priced', ['fake-fallback']),
    route('fake-fallback', []),
    ['plain', { ...route('plain', [])[1], provider: 'plain', model: 'fake-direct' }],
    ['repeated', { ...route('repeated', [])[1], provider: 'repeated', model: 'fake-direct' }],
  ]);
  const temporalOptions = { address: inject('temporalAddress') };
  const worker: RunningWorker = await startWorker({
    temporal: temporalOptions,
    namespace: 'default',
    taskQueue: 'holdfast',
    shutdownGraceMs: 1_000,
    dependencies: {
      ledger,
      providers: new Map([
        ['metered', createMeteredProvider({ ...metered, name: 'metered' })],
        ['repeated', createMeteredProvider({ ...metered, name: 'repeated', asksBy: 'replay' })],
        ['jobs', createMeteredJobsProvider({ ...metered, name: 'jobs' })],
        ['plain', createOpenAiChatProvider({ name: 'plain', baseUrl: `${url}/v1`, apiKey: 'any' })],
      ]),
      routes,
      logger: pino({ level: 'silent' }),
      telemetry: options.telemetry ?? noTelemetry,
    },
  });
  const connection = await Connection.connect(temporalOptions);
  const temporal = new Client({ connection });
  return {
    books,
    temporal,
    provider: createProviderControl(url),
    accountId: account,
    routes,
    start: (operationId, input, startOptions) =>
      temporal.workflow.start<() => Promise<OperationResult>>('llmCall', {
        ...startOptions,
        taskQueue: 'holdfast',
        workflowId: `call/${account}/${operationId}`,
        args: [
          {
            accountId: account,
            route: 'fake-priced',
            maxTokens: 40,
            request: { messages: [{ role: 'user', content: 'Count to forty.' }] },
            ...input,
          },
        ] as never,
      }),
    startJob: (operationId, input) =>
      temporal.workflow.start<() => Promise<OperationResult>>('remoteJob', {
        taskQueue: 'holdfast',
        workflowId: `job/${account}/${operationId}`,
        args: [
          { accountId: account, route: 'fake-job', bound: { ticks: 20 }, request: {}, ...input },
        ] as never,
      }),
    async close() {
      worker.shutdown();
      await worker.finished;
      await connection.close();
      await simulator.close();
      await books.close();
    },
  };
}
