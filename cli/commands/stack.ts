// The running stack of this checkout: look at it, stop it, throw its data away, talk to its server.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import {
  isSameProcessAlive,
  type ProcessIdentity,
} from '../../devstack/machine/process-identity.js';
import type { Run } from '../../devstack/run-file.js';
import { defaultCacheDirs, findTemporalBinary } from '../../devstack/temporal/find-binary.js';
import { readBudgets } from '../../ledger/read.js';
import {
  CHECKOUT_DIR,
  currentConfig,
  currentRun,
  nothingRunning,
  STATE_DIR,
  withLedger,
} from '../context.js';
import { CommandEnd, EXIT, print, printJson, printTable, say, withProgress } from '../output.js';

const STOP_LIMIT_MS = 60_000;
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
      providerUrl: run?.simulatorUrl ?? null,
      operations,
      budgets: balances,
    });
    return;
  }
  if (run !== undefined) tellRun(run);
  else print(`Temporal: ${config.temporal.address}`);
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

function tellRun(run: Run): void {
  print(`running as process ${run.main.pid} since ${run.startedAt}`);
  print(
    `Temporal: ${currentConfig().temporal.address}${run.uiUrl === null ? '' : `, UI ${run.uiUrl}`}`,
  );
  if (run.simulatorUrl !== null) print(`Provider: ${run.simulatorUrl}, a simulator`);
}

async function stop(): Promise<void> {
  const run = currentRun();
  if (run === undefined) {
    print('nothing runs in this checkout');
    return;
  }
  process.kill(run.main.pid, 'SIGTERM');
  // The run file goes first and the servers after it: only the end of the process is the end.
  if (!(await withProgress(`stopping process ${run.main.pid}`, hasEnded(run.main)))) {
    throw new CommandEnd(
      EXIT.failed,
      `process ${run.main.pid} still runs after ${STOP_LIMIT_MS / 1000} s; ask again, or end it with: kill -9 ${run.main.pid}`,
    );
  }
  print(`stopped process ${run.main.pid}`);
}

async function hasEnded(main: ProcessIdentity): Promise<boolean> {
  const until = performance.now() + STOP_LIMIT_MS;
  while (isSameProcessAlive(main)) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return true;
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
  const { temporal: settings } = currentConfig();
  if (run === undefined && process.env['TEMPORAL_ADDRESS'] === undefined) {
    throw nothingRunning('TEMPORAL_ADDRESS');
  }
  const child = spawn(run?.temporalBinary ?? (await findTemporal()), [...args], {
    stdio: 'inherit',
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: settings.address,
      TEMPORAL_NAMESPACE: settings.namespace,
    },
  });
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', (error) => {
      reject(new CommandEnd(EXIT.failed, `the temporal command does not start: ${error.message}`));
    });
    child.once('exit', (exitCode) => {
      resolve(exitCode ?? EXIT.failed);
    });
  });
}

/** On the PATH, else where `npm start` keeps the one it fetched; nothing is fetched for this. */
async function findTemporal(): Promise<string> {
  try {
    const found = await findTemporalBinary({
      stateDir: STATE_DIR,
      cacheDirs: defaultCacheDirs(join(CHECKOUT_DIR, '.holdfast')),
      ways: [],
      onProgress: (line) => process.stderr.write(`${line}\n`),
    });
    return found.path;
  } catch (error) {
    throw new CommandEnd(
      EXIT.failed,
      'the temporal command is neither on the PATH nor in the cache; install it, or have it fetched by: npm start',
      { cause: error },
    );
  }
}
