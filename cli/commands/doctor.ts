// doctor: one line a check, each failure with the way out.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { Command } from 'commander';
import { loadConfigFile } from '../../config/config-file.js';
import type { Ledger } from '../../ledger/connection.js';
import { checkBooks, readIdentity } from '../../ledger/read.js';
import { checkAtStartUp } from '../../ledger/start-up-checks.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';
import { taskQueuesOf } from '../../workflows/task-queues.js';
import {
  CHECKOUT_DIR,
  currentConfig,
  currentEnvironment,
  currentRun,
  withLedger,
  withTemporal,
} from '../context.js';
import { CommandEnd, EXIT, print, printJson } from '../output.js';

interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** Each queue with Temporal's own number of its type: 1 workflows, 2 activities. */
function servedQueues(): readonly (readonly [string, number])[] {
  const queues = taskQueuesOf(currentConfig().temporal.taskQueue);
  return [
    [queues.workflows, 1],
    [queues.workflows, 2],
    [queues.ledger, 2],
    [queues.reconcile, 2],
  ];
}

/** A poll lasts a minute; Temporal lists a poller for five, so one that is gone is told by its age. */
const POLL_AGE_MAX_S = 90;

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description('check everything that Holdfast needs, with the way out of each failure')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast doctor')
    .action(async (flags: { json?: true }) => {
      const findings = [
        checkNode(),
        await finding('configuration', () => Promise.resolve(checkConfiguration())),
        ...(await checkLedger()),
        ...(await checkTemporal()),
      ];
      if (flags.json === true) printJson(findings);
      else
        for (const { check, ok, detail } of findings)
          print(`${ok ? 'ok    ' : 'FAILED'} ${check}: ${detail}`);
      const failed = findings.filter((one) => !one.ok).length;
      if (failed > 0)
        throw new CommandEnd(EXIT.failed, `${failed} of ${findings.length} checks failed`);
    });
}

function checkNode(): Finding {
  const { engines } = JSON.parse(readFileSync(join(CHECKOUT_DIR, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  return { check: 'node', ok: true, detail: `${process.versions.node}, needs ${engines.node}` };
}

/** With its secrets, since the workers need them; no other check reads the file. */
function checkConfiguration(): string {
  const { filePath } = currentConfig();
  if (filePath === undefined) return 'no holdfast.yaml; the environment alone';
  loadConfigFile(filePath, currentEnvironment());
  const ofRun = currentRun()?.configFile ?? filePath;
  return ofRun === filePath ? filePath : `${filePath}; the workers of npm start read ${ofRun}`;
}

async function finding(check: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await work() };
  } catch (error) {
    return { check, ok: false, detail: error instanceof Error ? error.message : String(error) };
  }
}

async function checkLedger(): Promise<Finding[]> {
  const on = (check: string, work: (ledger: Ledger) => Promise<string>): Promise<Finding> =>
    finding(check, () => withLedger(work));
  const reachable = await on('ledger reachable', async (ledger) => {
    const [row] = await ledger.query({ name: 'version', text: 'select version() as version' });
    return String(row?.['version']).split(' on ')[0] ?? '';
  });
  if (!reachable.ok) return [reachable];
  return [
    reachable,
    await on('ledger schema, durability, identity', async (ledger) => {
      await checkAtStartUp(ledger);
      return 'as this program needs them';
    }),
    await on('ledger clock', async (ledger) => {
      const identity = await readIdentity(ledger);
      if (identity?.is_test === true)
        throw new Error(
          'this is a test database: its clock can be moved. Use another for real money',
        );
      return "the database's own";
    }),
    await on('books', async (ledger) => {
      const problems = await checkBooks(ledger);
      const [first] = problems;
      if (first !== undefined)
        throw new Error(
          `${problems.length} broken rules, first: ${first.problem} (${first.subject}: ${first.detail})`,
        );
      return 'whole';
    }),
  ];
}

async function checkTemporal(): Promise<Finding[]> {
  const on = (check: string, work: (client: Client) => Promise<string>): Promise<Finding> =>
    finding(check, () => withTemporal(work));
  const reachable = await on('temporal reachable', async (client) => {
    const info = await client.workflowService.getSystemInfo({});
    return `server ${info.serverVersion}, namespace ${client.options.namespace}`;
  });
  if (!reachable.ok) return [reachable];
  return [
    reachable,
    await on('search attributes', async (client) => {
      const { customAttributes } = await client.connection.operatorService.listSearchAttributes({
        namespace: client.options.namespace,
      });
      const missing = Object.keys(SEARCH_ATTRIBUTE_TYPES).filter(
        (name) => customAttributes[name] === undefined,
      );
      if (missing.length > 0)
        throw new Error(
          `${missing.join(', ')} missing; register them with: npx holdfast setup temporal`,
        );
      return 'registered';
    }),
    await on('worker', async (client) => {
      for (const [name, taskQueueType] of servedQueues()) {
        const { pollers } = await client.workflowService.describeTaskQueue({
          namespace: client.options.namespace,
          taskQueue: { name },
          // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the enum's package is not a dependency of ours
          taskQueueType,
        });
        const ages = pollers.map(({ lastAccessTime }) => ageInSeconds(lastAccessTime?.seconds));
        if (!ages.some((age) => age <= POLL_AGE_MAX_S))
          throw new Error(
            `nobody serves the queue ${name}${ages.length === 0 ? '' : `, the last one was seen ${Math.min(...ages)} s ago`}; ` +
              'start a worker with: node dist/worker/main.js',
          );
      }
      return 'all queues are served';
    }),
  ];
}

function ageInSeconds(seconds: { toString(): string } | null | undefined): number {
  return Math.round(Date.now() / 1000) - Number(seconds?.toString() ?? 0);
}
