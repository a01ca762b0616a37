// The running stack of this checkout: look at it, stop it, throw its data away, talk to its server.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { readBudgets } from '../../ledger/read.js';
import { currentConfig, currentRun, nothingRunning, STATE_DIR, withLedger } from '../context.js';
import { CommandEnd, EXIT, print, printJson, printTable, say, withProgress } from '../output.js';

const STOP_LIMIT_MS = 30_000;
/** Kept over a reset: what took a download. */
const KEPT = new Set(['cache']);

export function registerStack(program: Command): void {
  program
    .command('status')
    .description('what runs in this checkout, and what its ledger says')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast status')
    .action(status);
  program
    .command('stop')
    .description('stop the stack of this checkout, in order')
    .addHelpText('after', '\nExample:\n  npx holdfast stop')
    .action(stop);
  program
    .command('reset')
    .description("throw away the data of this checkout's own stack")
    .requiredOption('--yes', 'really do it')
    .addHelpText('after', '\nExample:\n  npx holdfast reset --yes')
    .action(reset);
  program
    .command('temporal')
    .description("run Temporal's own command against the running server")
    .argument('[args...]', 'behind --')
    .allowUnknownOption()
    .addHelpText('after', '\nExample:\n  npx holdfast temporal -- workflow list')
    .action(temporal);
}

async function status(flags: { json?: true }): Promise<void> {
  const run = currentRun();
  const config = currentConfig();
  if (run === undefined && config.databaseUrl === undefined) throw nothingRunning('DATABASE_URL');
  const balances = await withLedger(readBudgets);
  const operations = await withLedger((ledger) =>
    ledger.query({
      name: 'count_operations',
      text: 'select state, count(*)::integer as count from ledger.operation_view group by state order by state',
    }),
  );
  if (flags.json === true) {
    printJson({
      pid: run?.main.pid ?? null,
      startedAt: run?.startedAt ?? null,
      temporalAddress: config.temporal.address,
      uiUrl: run?.uiUrl ?? null,
      operations,
      budgets: balances,
    });
    return;
  }
  if (run !== undefined) print(`running as process ${run.main.pid} since ${run.startedAt}`);
  print(`Temporal: ${config.temporal.address}${run?.uiUrl == null ? '' : `, UI ${run.uiUrl}`}`);
  print('');
  printTable(
    ['state', 'operations'],
    operations.map((row) => [String(row['state']), String(row['count'])]),
  );
  print('');
  printTable(
    ['budget', 'limit', 'captured', 'held', 'of which unknown', 'available'],
    balances.map((row) => [
      row.budget_id,
      say(row.limit_amount, row.unit, 'no limit'),
      say(row.captured_amount, row.unit),
      say(row.held_amount, row.unit),
      `${say(row.unknown_amount, row.unit)} (${row.unknown_count})`,
      say(row.available_amount, row.unit, 'no limit'),
    ]),
  );
}

async function stop(): Promise<void> {
  const run = currentRun();
  if (run === undefined) {
    print('nothing runs in this checkout');
    return;
  }
  process.kill(run.main.pid, 'SIGTERM');
  const gone = (async (): Promise<boolean> => {
    const until = performance.now() + STOP_LIMIT_MS;
    while (performance.now() < until) {
      if (currentRun() === undefined) return true;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return false;
  })();
  if (!(await withProgress('stopping', gone))) {
    throw new CommandEnd(
      EXIT.failed,
      `process ${run.main.pid} still runs after ${STOP_LIMIT_MS / 1000} s`,
    );
  }
  print(`stopped process ${run.main.pid}`);
}

function reset(): void {
  const run = currentRun();
  if (run !== undefined) {
    throw new CommandEnd(
      EXIT.refused,
      `process ${run.main.pid} runs on that data; stop it first with: npx holdfast stop`,
    );
  }
  if (!existsSync(STATE_DIR)) {
    print('there is nothing to throw away');
    return;
  }
  for (const name of readdirSync(STATE_DIR)) {
    if (!KEPT.has(name)) rmSync(join(STATE_DIR, name), { recursive: true, force: true });
  }
  print('the data of this checkout is gone');
}

async function temporal(args: readonly string[]): Promise<void> {
  const run = currentRun();
  const binary = run?.temporalBinary ?? 'temporal';
  const { temporal: settings } = currentConfig();
  if (run === undefined && process.env['TEMPORAL_ADDRESS'] === undefined) {
    throw nothingRunning('TEMPORAL_ADDRESS');
  }
  const child = spawn(binary, [...args], {
    stdio: 'inherit',
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: settings.address,
      TEMPORAL_NAMESPACE: settings.namespace,
    },
  });
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', () => {
      reject(
        new CommandEnd(
          EXIT.failed,
          'the temporal command was not found; install it, or run: npm start',
        ),
      );
    });
    child.once('exit', (exitCode) => {
      resolve(exitCode ?? EXIT.failed);
    });
  });
  process.exitCode = code;
}
