// The sweeper outside of Temporal: for when its schedule, or all of Temporal, was lost.

import type { Command } from 'commander';
import { sweep, SWEEP_DEFAULTS } from '../../activities/sweep.js';
import { noTelemetry } from '../../activities/telemetry.js';
import type { SweepSummary } from '../../activities/contract.js';
import { createSupervisors } from '../../client/supervisors.js';
import { createLogger } from '../../config/logger.js';
import type { Unit } from '../../domain/money.js';
import { currentConfig, withLedger, withTemporal } from '../context.js';
import { printJson, printTable, say } from '../output.js';
import { readCount, readDuration } from '../read-flags.js';

interface SweepFlags {
  readonly grace: string;
  readonly perMinute: string;
  readonly count: string;
  readonly dryRun?: true;
  readonly json?: true;
}

export function registerSweep(program: Command): void {
  program
    .command('sweep')
    .description('start the supervisors again that are missing or stuck, once')
    .option('--grace <duration>', 'how long a question may be overdue', '30s')
    .option(
      '--per-minute <n>',
      'how many are started in a minute at most',
      String(SWEEP_DEFAULTS.perMinute),
    )
    .option(
      '--count <n>',
      'how many overdue operations are looked at',
      String(SWEEP_DEFAULTS.countMax),
    )
    .option('--dry-run', 'tell what would be started, and do nothing')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  npx holdfast sweep --dry-run\n  npx holdfast sweep   # also after the whole Temporal database was lost: see docs/runbook.md',
    )
    .action(run);
}

async function run(flags: SweepFlags): Promise<void> {
  const options = {
    graceMs: readDuration('--grace', flags.grace),
    perMinute: readCount('--per-minute', flags.perMinute),
    countMax: readCount('--count', flags.count),
    isDryRun: flags.dryRun === true,
  };
  const { temporal, logLevel } = currentConfig();
  const summary = await withLedger((ledger) =>
    withTemporal(async (client) => {
      const sweeping = {
        dependencies: { ledger, logger: createLogger(logLevel), telemetry: noTelemetry },
        supervisors: createSupervisors(client, temporal.taskQueue),
      };
      // Told before it acts: who is missing, and how much they hold.
      const found = await sweep(sweeping, { ...options, isDryRun: true });
      tellFound(found);
      return options.isDryRun ? found : sweep(sweeping, options);
    }),
  );
  if (flags.json === true) {
    printJson(summary);
    return;
  }
  printTable(
    ['workflow', 'overdue for', 'holds', 'done', 'found'],
    summary.swept.map((each) => [
      each.workflowId,
      `${Math.round(each.overdueMs / 1_000)} s`,
      say(BigInt(each.heldAmount), each.unit),
      each.status,
      each.why,
    ]),
  );
}

function tellFound({ swept }: SweepSummary): void {
  const missing = swept.filter(({ status }) => status === 'would_restart');
  process.stderr.write(
    `sweep: ${swept.length} overdue, ${missing.length} of them without a supervisor that asks, holding ${sumOf(missing)}\n`,
  );
}

function sumOf(rows: SweepSummary['swept']): string {
  const sums = new Map<Unit, bigint>();
  for (const { unit, heldAmount } of rows) {
    sums.set(unit, (sums.get(unit) ?? 0n) + BigInt(heldAmount));
  }
  return [...sums].map(([unit, sum]) => say(sum, unit)).join(' and ') || 'nothing';
}
