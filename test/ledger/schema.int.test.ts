import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { dumpSchema } from '../../ledger/dump-schema.js';
import { withDatabase } from '../support/ledger-database.js';
import { TEMPLATE_DATABASE } from '../support/template.js';

const FILE = fileURLToPath(new URL('../../ledger/schema.sql', import.meta.url));

test('ledger/schema.sql is what the migrations make; UPDATE_SCHEMA=1 writes it anew', async () => {
  const made = await dumpSchema(withDatabase(inject('databaseAdminUrl'), TEMPLATE_DATABASE));
  if (process.env['UPDATE_SCHEMA'] === '1') writeFileSync(FILE, made);
  expect(existsSync(FILE) ? readFileSync(FILE, 'utf8') : '').toBe(made);
});
