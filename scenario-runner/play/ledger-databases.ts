// Ledger databases
// ----------------
// A database of its own for each play: set up anew, or copied from one migrated template. Only what
// was made here is ever dropped.

import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { identifyLedger, migrateLedger, setUpLedger } from '../../ledger/set-up.js';

export interface LedgerDatabase {
  /** The application's role. */
  readonly url: string;
  /** The owner of the schema. */
  readonly adminUrl: string;
  drop(): Promise<void>;
}

interface Role {
  readonly name: string;
  readonly password: string;
}

/** Migrates a new database, with a role of its own. */
export async function setUpDatabase(options: {
  readonly adminUrl: string;
  readonly name: string;
  readonly isTest: boolean;
}): Promise<LedgerDatabase> {
  const { name } = options;
  const role = newRole(name);
  const adminUrl = withPath(options.adminUrl, name);
  await setUpLedger({ adminUrl, role, isTest: options.isTest });
  return {
    adminUrl,
    url: withRole(adminUrl, role),
    drop: () => dropAll(options.adminUrl, [name], role.name),
  };
}

export interface LedgerTemplate {
  /** A copy with an identity of its own; it is a test database, so that its clock can be moved. */
  copy(name: string): Promise<LedgerDatabase>;
  drop(): Promise<void>;
}

/** Migrates once, for many copies of some ten milliseconds each. */
export async function createTemplate(serverUrl: string, name: string): Promise<LedgerTemplate> {
  const role = newRole(name);
  await migrateLedger({ adminUrl: withPath(serverUrl, name), role });
  return {
    async copy(copyName) {
      await onServer(serverUrl, (client) =>
        client.query(
          `create database ${client.escapeIdentifier(copyName)} template ${client.escapeIdentifier(name)}`,
        ),
      );
      const adminUrl = withPath(serverUrl, copyName);
      await identifyLedger(adminUrl, true);
      return {
        adminUrl,
        url: withRole(adminUrl, role),
        drop: () => dropAll(serverUrl, [copyName]),
      };
    },
    drop: () => dropAll(serverUrl, [name], role.name),
  };
}

function newRole(database: string): Role {
  return { name: `${database}_app`, password: randomBytes(12).toString('hex') };
}

async function onServer(
  serverUrl: string,
  work: (client: pg.Client) => Promise<unknown>,
): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

function dropAll(serverUrl: string, databases: readonly string[], role?: string): Promise<void> {
  return onServer(serverUrl, async (client) => {
    for (const name of databases) {
      await client.query(`drop database if exists ${client.escapeIdentifier(name)} with (force)`);
    }
    if (role !== undefined) {
      await client.query(`drop role if exists ${client.escapeIdentifier(role)}`);
    }
  });
}

function withPath(databaseUrl: string, database: string): string {
  const url = new URL(databaseUrl);
  url.pathname = `/${database}`;
  return url.toString();
}

function withRole(databaseUrl: string, role: Role): string {
  const url = new URL(databaseUrl);
  url.username = role.name;
  url.password = role.password;
  return url.toString();
}
