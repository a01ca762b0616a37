import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { openLedger } from '../../ledger/connection.js';
import { placeHold } from '../../ledger/admit.js';
import { withdraw } from '../../ledger/fence.js';
import { knownMigrations, setUpLedger } from '../../ledger/set-up.js';
import { checkAtStartUp } from '../../ledger/start-up-checks.js';
import { createTestLedger, type TestLedger, withDatabase } from '../support/ledger-database.js';
import {
  ask,
  charge,
  fence,
  observe,
  openBudget,
  placed,
  priceRoute,
} from '../support/ledger-facts.js';

let books: TestLedger;

beforeEach(async () => {
  books = await createTestLedger('guards');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
});
afterEach(async () => {
  await books.expectBooksWhole();
  await books.close();
});

const stateOf = async (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof pg.DatabaseError ? error.code : String(error)),
  );

describe('privileges', () => {
  test("the application's role can insert, update, delete and truncate in no table", async () => {
    const { rows } = await books.admin.query<{ tablename: string }>(
      "select tablename from pg_tables where schemaname = 'ledger' order by 1",
    );
    expect(rows.length).toBeGreaterThan(20);
    const role = new pg.Client({ connectionString: books.databaseUrl });
    await role.connect();
    for (const { tablename } of rows) {
      for (const statement of [
        'insert into ledger.%t default values',
        'delete from ledger.%t',
        'truncate ledger.%t cascade',
      ]) {
        expect([tablename, await stateOf(role.query(statement.replace('%t', tablename)))]).toEqual([
          tablename,
          '42501',
        ]);
      }
      const column = await books.admin.query<{ attname: string }>(
        `select attname from pg_attribute where attrelid = 'ledger.${tablename}'::regclass and attnum = 1`,
      );
      const update = `update ledger.${tablename} set ${column.rows[0]?.attname ?? ''} = default`;
      expect([tablename, await stateOf(role.query(update))]).toEqual([tablename, '42501']);
    }
    for (const call of [
      'ledger.post(1, 1, 0, 0, 0)',
      "ledger.advance('x', 'x', 1, 1, '{}')",
      "ledger.move_clock('1 day')",
      "ledger.grant_application('x')",
      'ledger.set_up(true)',
      "ledger.lock_operation('x')",
    ]) {
      expect([call, await stateOf(role.query(`select ${call}`))]).toEqual([call, '42501']);
    }
    await role.end();
  });

  test('even the owner cannot change or remove a row of the journal', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    await fence(books.ledger, snapshot);
    await observe(books.ledger, snapshot, charge('40'));
    for (const table of [
      'entry',
      'posting',
      'evidence',
      'operation_event',
      'charge_report',
      'price',
      'price_version',
    ]) {
      expect([table, await stateOf(books.admin.query(`delete from ledger.${table}`))]).toEqual([
        table,
        'LG002',
      ]);
      expect([table, await stateOf(books.admin.query(`truncate ledger.${table} cascade`))]).toEqual(
        [table, 'LG002'],
      );
    }
    expect(await stateOf(books.admin.query('update ledger.entry set amount = 1'))).toBe('LG002');
  });
});

describe('start-up checks', () => {
  test('a ledger as it should be is accepted', async () => {
    await checkAtStartUp(books.ledger);
  });

  test('a newer schema is refused, with the migration that is not known', async () => {
    await books.admin.query(
      "insert into ledger.migration (name, run_on) values ('9999_from-tomorrow', now())",
    );
    await expect(checkAtStartUp(books.ledger)).rejects.toThrow('9999_from-tomorrow');
  });

  test('an older schema is refused, with the command that migrates it', async () => {
    await books.admin.query("delete from ledger.migration where name = '0007_administer'");
    await expect(checkAtStartUp(books.ledger)).rejects.toThrow('holdfast db setup');
  });

  test('a database that may lose acknowledged writes is refused, with the setting', async () => {
    const name = new URL(books.databaseUrl).pathname.slice(1);
    await books.admin.query(`alter database ${name} set synchronous_commit = off`);
    const ledger = openLedger({ databaseUrl: books.databaseUrl });
    await expect(checkAtStartUp(ledger)).rejects.toThrow(
      'LEDGER_NOT_DURABLE: synchronous_commit is off',
    );
    await ledger.close();
  });

  test('a copy on another server is untrusted: nothing is placed or returned, and a charge is still booked', async () => {
    const sending = await placed(books.ledger, ask('sent', 40));
    await fence(books.ledger, sending);
    const waiting = await placed(books.ledger, ask('waiting', 10));
    await books.admin.query('update ledger.identity set system_identifier = 1');
    await expect(checkAtStartUp(books.ledger)).rejects.toThrow('LEDGER_UNTRUSTED');
    expect((await placeHold(books.ledger, ask('new', 1))).status).toBe('ledger_untrusted');
    expect((await fence(books.ledger, waiting)).status).toBe('ledger_untrusted');
    expect(
      (await withdraw(books.ledger, { operationKey: waiting.operationKey, reason: 'test' })).status,
    ).toBe('ledger_untrusted');
    expect((await observe(books.ledger, sending, charge('40'))).status).toBe('captured');
  });

  test('a wrong password, a missing database and an empty port are told apart', async () => {
    const url = new URL(books.databaseUrl);
    const tryUrl = async (change: (target: URL) => void): Promise<string> => {
      const target = new URL(url);
      change(target);
      const ledger = openLedger({ databaseUrl: target.toString(), stepLimitMs: 500 });
      const said = await checkAtStartUp(ledger).catch((error: unknown) => String(error));
      await ledger.close();
      return String(said).split(':')[1]?.trim() ?? '';
    };
    expect(await tryUrl((target) => (target.password = 'wrong'))).toBe('LEDGER_ACCESS_DENIED');
    expect(await tryUrl((target) => (target.pathname = '/nowhere'))).toBe('LEDGER_ACCESS_DENIED');
    expect(await tryUrl((target) => (target.port = '1'))).toBe('LEDGER_UNAVAILABLE');
  });
});

describe('set-up', () => {
  test('four set-ups of one fresh database at once leave one ledger', async () => {
    const adminUrl = withDatabase(inject('databaseAdminUrl'), `set_up_${process.pid}`);
    const role = { name: `set_up_${process.pid}_app`, password: 'for-tests-only' };
    const applied = await Promise.all(
      Array.from({ length: 4 }, () => setUpLedger({ adminUrl, role })),
    );
    const { length } = await knownMigrations();
    expect(applied.map((names) => names.length).sort()).toEqual([0, 0, 0, length]);
    const client = new pg.Client({ connectionString: adminUrl });
    await client.connect();
    expect((await client.query('select 1 from ledger.identity')).rows).toHaveLength(1);
    await client.end();
    await books.admin.query(`drop database set_up_${process.pid} with (force)`);
    await books.admin.query(`drop role ${role.name}`);
  });
});
