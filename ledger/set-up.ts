// Set-up
// ------
// Creates database, schema and roles, safely twice and in parallel. Needs the owner's connection;
// the application's role gets functions and views, and nothing else.

import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { HoldfastError } from '../domain/failure.js';

const MIGRATIONS_DIR = fileURLToPath(new URL('./migrations', import.meta.url));
const ALREADY_THERE = new Set(['42P04', '42710', '23505']);
const LOCK_NAME = 'holdfast set-up';

export interface SetUpOptions {
  /** The owner of the schema; its database is created when it is missing. */
  readonly adminUrl: string;
  /** The application's role: created with this password, or left as it is when it exists. */
  readonly role: { readonly name: string; readonly password: string };
  /** A test database can be told the time; any other cannot. */
  readonly isTest?: boolean;
}

/** Migrates, gives the ledger its identity, and answers the migrations that were applied now. */
export async function setUpLedger(options: SetUpOptions): Promise<string[]> {
  const applied = await migrateLedger(options);
  await identifyLedger(options.adminUrl, options.isTest ?? false);
  return applied;
}

/** Schema and roles without an identity: for a database that others are copied from. */
export async function migrateLedger(options: SetUpOptions): Promise<string[]> {
  await createDatabase(options.adminUrl);
  const client = new pg.Client({ connectionString: options.adminUrl });
  await client.connect();
  try {
    await client.query('select pg_advisory_lock(hashtextextended($1, 0))', [LOCK_NAME]);
    const applied = await runner({
      dbClient: client,
      dir: MIGRATIONS_DIR,
      direction: 'up',
      migrationsTable: 'migration',
      migrationsSchema: 'ledger',
      createMigrationsSchema: true,
      noLock: true,
      singleTransaction: true,
      log: () => undefined,
    });
    await createRole(client, options.role);
    return applied.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}

/** Gives a copy of a migrated database an identity of its own. */
export async function identifyLedger(adminUrl: string, isTest: boolean): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query('select ledger.set_up($1)', [isTest]);
  } finally {
    await client.end();
  }
}

async function createRole(client: pg.Client, role: SetUpOptions['role']): Promise<void> {
  const name = client.escapeIdentifier(role.name);
  try {
    await client.query(`create role ${name} login password ${client.escapeLiteral(role.password)}`);
  } catch (error) {
    if (!isAlreadyThere(error)) throw error;
  }
  await client.query('select ledger.grant_application($1)', [role.name]);
  await client.query(`grant select on ledger.migration to ${name}`);
}

async function createDatabase(adminUrl: string): Promise<void> {
  const url = new URL(adminUrl);
  const database = decodeURIComponent(url.pathname.slice(1));
  const probe = new pg.Client({ connectionString: adminUrl });
  try {
    await probe.connect();
    await probe.end();
    return;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== '3D000') {
      throw connectFailure(adminUrl, error);
    }
  }
  url.pathname = '/postgres';
  const client = new pg.Client({ connectionString: url.toString() });
  await client.connect();
  try {
    await client.query(`create database ${client.escapeIdentifier(database)}`);
  } catch (error) {
    if (!isAlreadyThere(error)) throw error;
  } finally {
    await client.end();
  }
}

function isAlreadyThere(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ALREADY_THERE.has(error.code ?? '');
}

function connectFailure(databaseUrl: string, error: unknown): HoldfastError {
  const { hostname, port, pathname, username } = new URL(databaseUrl);
  const where = `${username}@${hostname}:${port === '' ? '5432' : port}${pathname}`;
  const said = error instanceof Error ? error.message : String(error);
  const code = error instanceof pg.DatabaseError ? 'LEDGER_ACCESS_DENIED' : 'LEDGER_UNAVAILABLE';
  return new HoldfastError(code, `cannot connect to ${where}: ${said}`, { cause: error });
}

/** The migrations that this program brings, by name, in order. */
export async function knownMigrations(): Promise<string[]> {
  const files = await readdir(MIGRATIONS_DIR);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}
