// A ledger database of its own for a test file, copied from one migrated template.

import pg from 'pg';
import { inject } from 'vitest';
import { checkBooks } from '../../ledger/read.js';
import { type Ledger, openLedger } from '../../ledger/connection.js';
import { identifyLedger } from '../../ledger/set-up.js';
import { APPLICATION_ROLE, TEMPLATE_DATABASE } from './template.js';

export interface TestLedger {
  readonly ledger: Ledger;
  /** The application's role. */
  readonly databaseUrl: string;
  /** The owner, for looking at tables. */
  readonly admin: pg.Pool;
  readonly adminUrl: string;
  /** Fails when a rule of conservation is broken. */
  expectBooksWhole(): Promise<void>;
  close(): Promise<void>;
}

let databaseCount = 0;

export async function createTestLedger(label: string): Promise<TestLedger> {
  const serverUrl = inject('databaseAdminUrl');
  databaseCount += 1;
  const name = `test_${label.replace(/[^a-z0-9]/g, '_')}_${process.pid}_${databaseCount}`;
  await onServer(serverUrl, `create database ${name} template ${TEMPLATE_DATABASE}`);
  const adminUrl = withDatabase(serverUrl, name);
  await identifyLedger(adminUrl, true);
  const databaseUrl = withRole(adminUrl);
  const ledger = openLedger({ databaseUrl });
  const admin = new pg.Pool({ connectionString: adminUrl, max: 4 });
  admin.on('error', () => undefined);
  return {
    ledger,
    databaseUrl,
    admin,
    adminUrl,
    async expectBooksWhole() {
      const problems = await checkBooks(ledger);
      if (problems.length > 0) throw new Error(`books are broken: ${JSON.stringify(problems)}`);
    },
    async close() {
      await ledger.close();
      await admin.end();
      await onServer(serverUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

async function onServer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

export function withDatabase(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.toString();
}

function withRole(adminUrl: string): string {
  const url = new URL(adminUrl);
  url.username = APPLICATION_ROLE.name;
  url.password = APPLICATION_ROLE.password;
  return url.toString();
}
