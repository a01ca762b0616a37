// What an operator can do to operations: ask for a stop, and have the provider asked again. The ledger
// has the wish first; the supervisor is only woken. What became of it is printed from the ledger.

import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { Client } from '@temporalio/client';
import type { Command } from 'commander';
import { HoldfastError } from '../../domain/failure.js';
import type { OperatorMessage } from '../../domain/operator-message.js';
import { reportStop } from '../../domain/stop.js';
import { requestCancel } from '../../ledger/fence.js';
import type { Ledger } from '../../ledger/connection.js';
import { type OperationRow, readOperationByKey } from '../../ledger/read.js';
import { withLedger, withTemporal } from '../context.js';
import { CommandEnd, EXIT, printJson, printTable } from '../output.js';
import { readId } from '../read-flags.js';
import {
  printNothing,
  selectOperations,
  type SelectFlags,
  tellSelection,
  withSelection,
} from '../select-operations.js';

interface ActFlags extends SelectFlags {
  readonly reason: string;
  readonly by?: string;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly wait?: string;
}

interface Acted {
  readonly accountId: string;
  readonly operationId: string;
  readonly operationKey: string;
  /** What was done: `would`, `requested`, `already_requested`, `closed`, `woken`, `no_supervisor`. */
  readonly done: string;
  readonly cancel: string;
  readonly heldAmount: string;
  readonly text: string;
}

export function registerActs(ops: Command): void {
  withSelection(
    ops.command('cancel [ids...]').description('ask the provider to stop; asking is not stopping'),
  )
    .requiredOption('--reason <text>', 'why; it is stored with the wish')
    .option('--by <name>', 'who; your user name when left out')
    .option('--dry-run', 'tell what would be asked to stop, and do nothing')
    .option('--yes', 'needed to stop more than one')
    .addHelpText(
      'after',
      '\nExamples:\n  npx holdfast ops cancel op-1 --reason "no longer needed"\n  npx holdfast ops cancel --task report-7 --reason "wrong plan" --dry-run',
    )
    .action(async (ids: string[], flags: ActFlags) => {
      await act(ids, flags, 'cancel');
    });
  withSelection(ops.command('lookup [ids...]').description('have the provider asked again now'))
    .option('--reason <text>', 'why', 'an operator wants to know')
    .option('--by <name>', 'who; your user name when left out')
    .option('--dry-run', 'tell about which it would be asked, and do nothing')
    .addHelpText(
      'after',
      '\nExamples:\n  npx holdfast ops lookup op-1\n  npx holdfast ops lookup --state unknown --older-than 15m',
    )
    .action(async (ids: string[], flags: ActFlags) => {
      await act(ids, flags, 'lookup');
    });
}

async function act(
  ids: readonly string[],
  flags: ActFlags,
  what: 'cancel' | 'lookup',
): Promise<void> {
  const message: Required<OperatorMessage> = {
    by: readId('--by', flags.by ?? userInfo().username),
    reason: readId('--reason', flags.reason),
    requestId: randomUUID(),
  };
  await withLedger(async (ledger) => {
    const rows = await selectOperations(ledger, ids, flags);
    if (rows.length === 0) {
      printNothing(flags);
      return;
    }
    tellSelection(rows, flags.dryRun === true ? `would ${what}` : what);
    if (what === 'cancel' && rows.length > 1 && flags.dryRun !== true && flags.yes !== true) {
      throw new CommandEnd(
        EXIT.misuse,
        `that is more than one; look with --dry-run, or repeat with --yes to stop all ${rows.length}`,
      );
    }
    const acted =
      flags.dryRun === true
        ? rows.map((row) => actedOf(row, 'would', row.last_answer ?? ''))
        : await actOn(ledger, rows, { what, message });
    if (flags.json === true) printJson(acted);
    else tellActed(acted);
  });
}

async function actOn(
  ledger: Ledger,
  rows: readonly OperationRow[],
  wish: { readonly what: 'cancel' | 'lookup'; readonly message: Required<OperatorMessage> },
): Promise<Acted[]> {
  const stored: Acted[] = [];
  for (const row of rows) {
    stored.push(
      wish.what === 'cancel'
        ? await storeWish(ledger, row, wish.message)
        : actedOf(row, row.closed_at === null ? 'open' : 'closed', row.last_answer ?? ''),
    );
  }
  const open = rows.filter((row) => row.closed_at === null);
  if (open.length === 0) return stored;
  const told = await wake(open, wish);
  return stored.map((each) => {
    const heard = told.get(each.operationKey);
    if (heard === undefined) return each;
    return {
      ...each,
      done: wish.what === 'lookup' ? heard.done : each.done,
      text: joined(each.text, heard.text),
    };
  });
}

function joined(one: string, other: string): string {
  return [one, other].filter((text) => text !== '').join('; ');
}

async function storeWish(
  ledger: Ledger,
  row: OperationRow,
  message: Required<OperatorMessage>,
): Promise<Acted> {
  const { operation_key: operationKey } = row;
  // Whether its provider can be asked is known to the workers: whoever asks next says so.
  const answer = await requestCancel(ledger, { operationKey, ...message, isSupported: true });
  if (answer.status === 'ledger_untrusted') {
    throw new HoldfastError(
      'LEDGER_UNTRUSTED',
      'nothing is stored until an operator opens it again',
    );
  }
  const snapshot = answer.snapshot ?? (await readOperationByKey(ledger, operationKey));
  const text = snapshot === undefined ? '' : reportStop(snapshot).text;
  return { ...actedOf(row, answer.status, text), cancel: snapshot?.cancel ?? row.cancel };
}

/** Wakes their supervisors. That Temporal is away changes nothing in what was stored. */
async function wake(
  rows: readonly OperationRow[],
  wish: { readonly what: 'cancel' | 'lookup'; readonly message: OperatorMessage },
): Promise<Map<string, { readonly done: string; readonly text: string }>> {
  const told = new Map<string, { readonly done: string; readonly text: string }>();
  const what = wish.what === 'cancel' ? 'requestCancel' : 'lookUpNow';
  const all = (done: string, text: string): void => {
    for (const row of rows)
      if (!told.has(row.operation_key)) told.set(row.operation_key, { done, text });
  };
  // Loaded here: most commands about operations need no Temporal, and it takes longer than they do.
  const { isUnreachable, tellSupervisor } = await import('../../client/operator.js');
  try {
    await withTemporal(async (client: Client) => {
      for (const row of rows) {
        const heard = await tellSupervisor(client, row.workflow_id, {
          what,
          message: wish.message,
        });
        told.set(
          row.operation_key,
          heard === 'told'
            ? { done: 'woken', text: '' }
            : { done: heard, text: 'no supervisor runs, start it again with: npx holdfast sweep' },
        );
      }
    });
  } catch (error) {
    const isAway = error instanceof HoldfastError && error.code === 'TEMPORAL_UNAVAILABLE';
    if (!isAway && !isUnreachable(error)) throw error;
    all('temporal_away', 'Temporal cannot be reached; whoever asks next passes it on');
  }
  return told;
}

function actedOf(row: OperationRow, done: string, text: string): Acted {
  return {
    accountId: row.account_id,
    operationId: row.operation_id,
    operationKey: row.operation_key,
    done,
    cancel: row.cancel,
    heldAmount: row.held_amount.toString(),
    text,
  };
}

function tellActed(acted: readonly Acted[]): void {
  printTable(
    ['account', 'operation', 'done', 'cancel', 'what is known'],
    acted.map((each) => [each.accountId, each.operationId, each.done, each.cancel, each.text]),
  );
}
