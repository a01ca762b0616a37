// Setting up Temporal, and the links into its UI.

import type { Command } from 'commander';
import {
  registerSearchAttributes,
  scheduleSweeps,
  SWEEPER_SCHEDULE_ID,
} from '../../client/set-up-namespace.js';
import { describeUiLinks } from '../../client/ui-links.js';
import { HoldfastError } from '../../domain/failure.js';
import { listOperations } from '../../ledger/read.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';
import { currentConfig, currentRun, withLedger, withTemporal } from '../context.js';
import { CommandEnd, EXIT, print, printJson, withProgress } from '../output.js';
import { misuse, readDuration } from '../read-flags.js';

export function registerSetUpTemporal(setUp: Command): void {
  setUp
    .command('temporal')
    .description('register the search attributes and the sweeper’s schedule; twice without harm')
    .option('--every <duration>', 'how often it sweeps', '1m')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExample:\n  TEMPORAL_ADDRESS=127.0.0.1:7233 npx holdfast setup temporal',
    )
    .action(setUpTemporal);
}

async function setUpTemporal(flags: { every: string; json?: true }): Promise<void> {
  const everyMs = readDuration('--every', flags.every);
  if (everyMs < 1_000) throw misuse('--every', `is "${flags.every}"; give 1s or more`);
  const { taskQueue } = currentConfig().temporal;
  await withTemporal(async (client) => {
    const { namespace } = client.options;
    const attributes = await withProgress(
      'registering the search attributes',
      registerSearchAttributes(client, SEARCH_ATTRIBUTE_TYPES),
    );
    const schedule = await withProgress(
      'creating the schedule',
      scheduleSweeps(client, { taskQueue, everyMs }),
    );
    if (flags.json === true) printJson({ namespace, attributes, schedule });
    else {
      print(`namespace ${namespace} knows ${attributes.join(', ')}`);
      print(`schedule ${SWEEPER_SCHEDULE_ID}: ${schedule}`);
    }
    if (schedule === 'exists_otherwise') {
      throw new CommandEnd(
        EXIT.refused,
        `the schedule ${SWEEPER_SCHEDULE_ID} is there already and starts something else, or on another queue than ${taskQueue}; look at it with: temporal schedule describe -s ${SWEEPER_SCHEDULE_ID}`,
      );
    }
  });
}

export function registerUiLinks(program: Command): void {
  program
    .command('ui-links')
    .description(
      'links into the Temporal UI: what is unknown, what needs somebody, what is biggest',
    )
    .option('--ui <url>', 'where the UI is; TEMPORAL_UI_URL, or that of a running stack')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast ui-links --ui http://localhost:8080')
    .action(uiLinks);
}

async function uiLinks(flags: { ui?: string; json?: true }): Promise<void> {
  const { namespace } = currentConfig().temporal;
  const base = flags.ui ?? process.env['TEMPORAL_UI_URL'] ?? currentRun()?.uiUrl ?? undefined;
  if (base === undefined || !URL.canParse(base)) {
    throw misuse(
      '--ui',
      `is ${base === undefined ? 'missing' : `"${base}"`}; give an address such as http://localhost:8080`,
    );
  }
  const links = describeUiLinks(base, namespace, {
    now: new Date(),
    bigHoldAmount: await bigHold(),
  });
  if (flags.json === true) printJson(links);
  else for (const { name, url } of links) print(`${name}\n  ${url}\n`);
}

/** The tenth biggest open hold: the list of the biggest shows these ten. 1 where the ledger is away. */
async function bigHold(): Promise<bigint> {
  try {
    const rows = await withLedger((ledger) =>
      listOperations(ledger, { isOpen: true, countMax: 10_000 }),
    );
    const held = rows.map((row) => row.held_amount).sort((a, b) => (a < b ? 1 : -1));
    return held[Math.min(9, held.length - 1)] ?? 1n;
  } catch (error) {
    if (error instanceof HoldfastError || error instanceof CommandEnd) return 1n;
    throw error;
  }
}
