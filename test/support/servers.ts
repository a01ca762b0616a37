// Servers
// -------
// Global set-up of the tiers that need a real Postgres and a real Temporal server: from the
// environment, else from the devstack, once for all tiers of a run.

import { mkdtempSync, rmSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { type Devstack, startDevstack } from '../../devstack/devstack.js';
import { migrateLedger } from '../../ledger/set-up.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';
import { APPLICATION_ROLE, TEMPLATE_DATABASE } from './template.js';
import './provided.js';

const CHECKOUT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

interface Shared {
  readonly devstack: Devstack;
  readonly stateDir: string;
  userCount: number;
}

/** Each tier loads this file anew, so what they share stands outside of it. */
const here = globalThis as { holdfastTestServers?: Promise<Shared> | undefined };

/** Each tier calls it; the first one starts the servers and the last one stops them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  here.holdfastTestServers ??= start();
  const servers = await here.holdfastTestServers;
  servers.userCount += 1;
  project.provide('databaseAdminUrl', servers.devstack.postgres.adminUrl);
  project.provide('temporalAddress', servers.devstack.temporal.address);
  project.provide('temporalUiUrl', servers.devstack.temporal.uiUrl ?? '');
  project.provide('temporalBinary', servers.devstack.temporal.binaryPath ?? '');
  return async () => {
    servers.userCount -= 1;
    if (servers.userCount > 0) return;
    here.holdfastTestServers = undefined;
    await servers.devstack.stop();
    rmSync(servers.stateDir, { recursive: true, force: true });
  };
}

async function start(): Promise<Shared> {
  const stateDir = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  chmodSync(stateDir, 0o755);
  const devstack = await startDevstack({
    checkoutDir: CHECKOUT,
    stateDir,
    databaseAdminUrl: process.env['DATABASE_ADMIN_URL'],
    temporalAddress: process.env['TEMPORAL_ADDRESS'],
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    fastTimers: true,
    inMemoryTemporal: true,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  // Vitest ends without a teardown on a signal; the servers are our own children and go with us.
  const stop = (): void => {
    void devstack.stop().finally(() => process.exit(1));
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  await makeTemplate(devstack.postgres.adminUrl);
  return { devstack, stateDir, userCount: 0 };
}

/** A migrated database without an identity: each copy gets its own. */
async function makeTemplate(adminUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(`drop database if exists ${TEMPLATE_DATABASE} with (force)`);
  } finally {
    await client.end();
  }
  const url = new URL(adminUrl);
  url.pathname = `/${TEMPLATE_DATABASE}`;
  await migrateLedger({ adminUrl: url.toString(), role: APPLICATION_ROLE });
}
