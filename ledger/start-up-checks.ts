// Start-up checks
// ---------------
// A program refuses to work on a ledger that could lose acknowledged writes, that another version
// of the program has made, or that is a copy elsewhere.

import { HoldfastError } from '../domain/failure.js';
import type { Ledger } from './connection.js';
import { readIdentity } from './read.js';
import { knownMigrations } from './set-up.js';

const DURABILITY = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

/** Throws the first problem as HoldfastError, with the way out in its message. */
export async function checkAtStartUp(ledger: Ledger): Promise<void> {
  await checkSchema(ledger);
  await checkDurability(ledger);
  const identity = await readIdentity(ledger);
  if (identity?.is_trusted !== true) {
    throw new HoldfastError(
      'LEDGER_UNTRUSTED',
      'this database is a copy: it was set up on another server. Point DATABASE_URL at the original, ' +
        'or set up a new ledger with: holdfast db setup',
    );
  }
}

async function checkDurability(ledger: Ledger): Promise<void> {
  const rows = await ledger.query({
    name: 'durability',
    text: 'select name, setting from pg_settings where name = any ($1)',
    values: [[...DURABILITY]],
  });
  for (const row of rows) {
    if (row['setting'] === 'off') {
      throw new HoldfastError(
        'LEDGER_NOT_DURABLE',
        `${String(row['name'])} is off: a crash could lose a hold that was acknowledged. ` +
          `Switch it on (alter system set ${String(row['name'])} = on) and restart Postgres`,
      );
    }
  }
}

async function checkSchema(ledger: Ledger): Promise<void> {
  const known = await knownMigrations();
  const rows = await ledger
    .query({ name: 'migrations', text: 'select name from ledger.migration order by id' })
    .catch((error: unknown) => {
      if (error instanceof HoldfastError && error.code === 'LEDGER_SCHEMA_MISMATCH') return [];
      throw error;
    });
  const stored = rows.map((row) => String(row['name']));
  const newer = stored.filter((name) => !known.includes(name));
  const missing = known.filter((name) => !stored.includes(name));
  if (newer.length > 0) {
    throw new HoldfastError(
      'LEDGER_SCHEMA_MISMATCH',
      `the database has a newer schema: this program does not know ${newer.join(', ')}. Use a newer program`,
    );
  }
  if (missing.length > 0) {
    throw new HoldfastError(
      'LEDGER_SCHEMA_MISMATCH',
      `the database lacks ${missing.join(', ')}. Migrate it with: holdfast db setup`,
    );
  }
}
