// What both benchmarks stand on: real servers of their own, a ledger, one account a budget.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Devstack, startDevstack } from '../devstack/devstack.js';
import { amount } from '../domain/money.js';
import { createAccount, createBudget, setPrice } from '../ledger/administer.js';
import { type Ledger, openLedger } from '../ledger/connection.js';
import { setUpLedger } from '../ledger/set-up.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../workflows/search-attributes.js';

export const ROUTE = 'fake-direct';

export interface Stand {
  readonly devstack: Devstack;
  readonly ledger: Ledger;
  readonly workDir: string;
  close(): Promise<void>;
}

export async function openStand(budgetCount: number, poolSizeMax: number): Promise<Stand> {
  const workDir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  chmodSync(workDir, 0o755);
  const devstack = await startDevstack({
    checkoutDir: dirname(dirname(dirname(fileURLToPath(import.meta.url)))),
    stateDir: workDir,
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  const role = { name: 'bench_app', password: 'for-a-bench-only' };
  const url = new URL(devstack.postgres.adminUrl);
  url.pathname = '/bench';
  await setUpLedger({ adminUrl: url.toString(), role });
  url.username = role.name;
  url.password = role.password;
  const ledger = openLedger({ databaseUrl: url.toString(), poolSizeMax, stepLimitMs: 60_000 });
  for (let no = 0; no < budgetCount; no += 1) {
    await createAccount(ledger, { accountId: `account-${no}` });
    await createBudget(ledger, {
      budgetId: `budget-${no}`,
      unit: 'credit',
      limitAmount: amount(10n ** 15n),
      scopes: [{ kind: 'account', value: `account-${no}` }],
    });
  }
  await setPrice(ledger, {
    route: ROUTE,
    unit: 'credit',
    rates: [
      { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
      { dimension: 'input_tokens', rateAmount: amount(0n), perCount: 1n },
      { dimension: 'output_tokens', rateAmount: amount(1n), perCount: 1n },
    ],
  });
  return {
    devstack,
    ledger,
    workDir,
    async close() {
      await ledger.close();
      await devstack.stop();
      rmSync(workDir, { recursive: true, force: true });
    },
  };
}
