// What a play does to the ledger as its owner: it moves the clock of its own test database, and
// looks where the application may not.

import pg from 'pg';

export async function asOwner<T>(
  adminUrl: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: adminUrl });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Only a test database has a clock that can be moved; any other refuses. */
export async function forwardLedgerClock(adminUrl: string, byMs: number): Promise<void> {
  await asOwner(adminUrl, (client) =>
    client.query("select ledger.move_clock($1::bigint * interval '1 millisecond')", [byMs]),
  );
}

export function countUnmatchedReports(adminUrl: string): Promise<number> {
  return asOwner(adminUrl, async (client) => {
    const { rows } = await client.query<{ count: number }>(
      'select count(*)::integer as count from ledger.unmatched_report',
    );
    return rows[0]?.count ?? 0;
  });
}

/** Entries up to this one were made by somebody before us. */
export function newestEntryId(adminUrl: string): Promise<bigint> {
  return asOwner(adminUrl, async (client) => {
    const { rows } = await client.query<{ entry_id: string }>(
      'select coalesce(max(entry_id), 0)::text as entry_id from ledger.entry',
    );
    return BigInt(rows[0]?.entry_id ?? '0');
  });
}
