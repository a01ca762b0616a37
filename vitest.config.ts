import { existsSync } from 'node:fs';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

interface Tier {
  name: string;
  include: string[];
  exclude?: string[];
  /** Files at a time. Tiers that start servers or kill processes go file by file, so that times mean something. */
  workerCount: number;
  timeoutMs: number;
  needsServers?: boolean;
}

const suffixes = ['int', 'flow', 'replay', 'crash', 'scenario', 'ui'];
const withSuffix = (suffix: string): string => `test/**/*.${suffix}.test.ts`;

/** In the order they run in, cheapest first. */
const tiers: Tier[] = [
  {
    name: 'unit',
    include: ['test/**/*.test.ts'],
    exclude: suffixes.map(withSuffix),
    workerCount: 2,
    timeoutMs: 30_000,
  },
  { name: 'replay', include: [withSuffix('replay')], workerCount: 2, timeoutMs: 30_000 },
  {
    name: 'int',
    include: [withSuffix('int')],
    workerCount: 2,
    timeoutMs: 60_000,
    needsServers: true,
  },
  {
    name: 'flow',
    include: [withSuffix('flow')],
    workerCount: 1,
    timeoutMs: 60_000,
    needsServers: true,
  },
  {
    name: 'crash',
    include: [withSuffix('crash')],
    workerCount: 1,
    timeoutMs: 120_000,
    needsServers: true,
  },
  {
    name: 'scenario',
    include: [withSuffix('scenario')],
    workerCount: 1,
    timeoutMs: 120_000,
    needsServers: true,
  },
];

/** Needs a browser: `test/run.mjs` names the one that it found. */
const uiTier: Tier = {
  name: 'ui',
  include: [withSuffix('ui')],
  workerCount: 1,
  timeoutMs: 60_000,
  needsServers: true,
};
const hasBrowser = (process.env['CHROME_PATH'] ?? '') !== '';

const servers = 'test/support/servers.ts';

const project = (tier: Tier, groupOrder: number): TestProjectInlineConfiguration => ({
  test: {
    name: tier.name,
    include: tier.include,
    exclude: tier.exclude ?? [],
    pool: 'forks',
    maxWorkers: tier.workerCount,
    fileParallelism: tier.workerCount > 1,
    testTimeout: tier.timeoutMs,
    // Scenarios run beside each other; more at once would only wait for the two cores.
    maxConcurrency: 2,
    hookTimeout: tier.timeoutMs,
    sequence: { groupOrder },
    globalSetup: tier.needsServers === true && existsSync(servers) ? [servers] : [],
  },
});

export default defineConfig({
  test: {
    projects: [...tiers, ...(hasBrowser ? [uiTier] : [])].map(project),
    reporters: ['default', './test/support/summary-reporter.ts'],
  },
});
