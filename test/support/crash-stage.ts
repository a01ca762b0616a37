// A stage with worker processes for tests that kill them. Each gap is entered by a held gate or a
// row lock, and proved from outside before the kill.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { inject } from 'vitest';
import { createHoldfastClient } from '../../client/holdfast-client.js';
import type { OperationHandle } from '../../client/operation-handle.js';
import type { OperationResult } from '../../domain/operation-result.js';
import { amount } from '../../domain/money.js';
import type { AttemptSnapshot, OperationSnapshot } from '../../domain/snapshot.js';
import { createAccount, createBudget, setPrice } from '../../ledger/administer.js';
import { checkBooks, readBudget, readOperation } from '../../ledger/read.js';
import { openStage, type Stage } from '../../scenario-runner/play/stage.js';
import { setUpDatabase } from '../../scenario-runner/play/ledger-databases.js';
import { waitUntil } from '../../scenario-runner/play/wait-until.js';

const CHECKOUT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const ROUTE = 'fake-direct';
export const WORST_CASE = 40n;

export interface RowLock {
  /** Rolls back and lets whoever waits go on. */
  release(): Promise<void>;
}

export interface CrashStage {
  readonly stage: Stage;
  readonly accountId: string;
  call(operationId: string): OperationHandle;
  operation(operationId: string): Promise<OperationSnapshot | undefined>;
  attempt(operationId: string): Promise<AttemptSnapshot | undefined>;
  /** Locks what a step needs, so that it stands inside its transaction. */
  lock(statement: string): Promise<RowLock>;
  /** Waits until a worker's statement of that function stands and waits for a lock. */
  workerStandsIn(functionName: string): Promise<number>;
  /** Ends the database's side of statements whose client is gone, so that they never commit. */
  terminateBackend(pid: number): Promise<void>;
  query(statement: string): Promise<{ rows: unknown[] }>;
  receivedFor(operationId: string): Promise<number>;
  settled(operationId: string): Promise<OperationResult>;
  expectSettledOnce(operationId: string): Promise<void>;
  close(): Promise<void>;
}

export async function openCrashStage(label: string, limit = 10_000n): Promise<CrashStage> {
  const stage = await openStage({
    distDir: join(CHECKOUT, 'dist'),
    workDir: mkdtempSync(join(tmpdir(), 'holdfast-crash-')),
    database: await setUpDatabase({
      adminUrl: inject('databaseAdminUrl'),
      name: `crash_${label}_${process.pid}`,
      isTest: true,
    }),
    temporalAddress: inject('temporalAddress'),
    namespace: 'default',
    simulatorPrices: [],
    configText: configFor,
    shutdownGraceMs: 4_000,
  });
  const admin = new pg.Pool({ connectionString: stage.databaseAdminUrl, max: 6 });
  admin.on('error', () => undefined);
  const accountId = `crash-${label}-${process.pid}-${Date.now()}`;
  await createAccount(stage.ledger, { accountId });
  await createBudget(stage.ledger, {
    budgetId: 'team-a',
    unit: 'credit',
    limitAmount: amount(limit),
    scopes: [{ kind: 'account', value: accountId }],
  });
  await setPrice(stage.ledger, {
    route: ROUTE,
    unit: 'credit',
    rates: [
      { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
      { dimension: 'input_tokens', rateAmount: amount(0n), perCount: 1n },
      { dimension: 'output_tokens', rateAmount: amount(1n), perCount: 1n },
    ],
  });
  // Requests stand in the input: then the admission is the first thing a worker asks the ledger.
  const holdfast = createHoldfastClient({ client: stage.temporal });
  const operation = (operationId: string) =>
    readOperation(stage.ledger, { accountId, operationId });
  const crash: CrashStage = {
    stage,
    accountId,
    operation,
    call: (operationId) =>
      holdfast.call({
        accountId,
        operationId,
        route: ROUTE,
        maxTokens: 40,
        request: { messages: [{ role: 'user', content: 'Count to forty.' }] },
      }),
    attempt: async (operationId) => (await operation(operationId))?.attempts.at(-1),
    async lock(statement) {
      const client = await admin.connect();
      await client.query('begin');
      await client.query(statement);
      return {
        async release() {
          await client.query('rollback');
          client.release();
        },
      };
    },
    workerStandsIn: (functionName) =>
      waitUntil(`a worker stands in ${functionName}`, async () => {
        const { rows } = await admin.query<{ pid: number }>(
          `select pid from pg_stat_activity
           where datname = current_database() and application_name = 'holdfast worker'
             and wait_event_type = 'Lock' and query like $1`,
          [`%ledger.${functionName}(%`],
        );
        return rows[0]?.pid;
      }),
    async terminateBackend(pid) {
      await admin.query('select pg_terminate_backend($1)', [pid]);
    },
    query: (statement) => admin.query(statement),
    async receivedFor(operationId) {
      const snapshot = await operation(operationId);
      return snapshot === undefined ? 0 : stage.provider.receivedUnder(`${snapshot.operationKey}-`);
    },
    async settled(operationId) {
      const result = await crash.call(operationId).result();
      if (result.outcome === 'closed_after_cancel') throw new Error('nobody cancelled it');
      return result;
    },
    async expectSettledOnce(operationId) {
      const result = await crash.settled(operationId);
      const received = await crash.receivedFor(operationId);
      const balance = await readBudget(stage.ledger, 'team-a');
      const seen = {
        outcome: result.outcome,
        charged: result.chargedAmount,
        received,
        held: balance?.held_amount,
        problems: await checkBooks(stage.ledger),
      };
      const wanted = { outcome: 'settled', charged: '40', received: 1, held: 0n, problems: [] };
      if (!isDeepStrictEqual(seen, wanted)) {
        throw new Error(
          `expected one request and whole books, saw ${JSON.stringify(seen, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))}`,
        );
      }
    },
    async close() {
      await stage.provider.releaseAll();
      await stage.close();
      await admin.end();
    },
  };
  return crash;
}

function configFor(providerUrl: string): string {
  return `allow_short_timings: true
providers:
  metered: { kind: metered, base_url: "${providerUrl}", api_key_env: SIMULATOR_API_KEY }
routes:
  ${ROUTE}:
    provider: metered
    max_tokens_max: 1000
    timings: { dispatch_limit_ms: 20000, heartbeat_ms: 1000, question_first_ms: 150, question_max_ms: 1000 }
`;
}
