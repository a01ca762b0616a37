// Which operations a command is about: named ones, or those that fit. Every act tells how many and
// how much before it begins.

import type { Command } from 'commander';
import type { Unit } from '../domain/money.js';
import type { Ledger } from '../ledger/connection.js';
import { listOperations, type OperationFilter, type OperationRow } from '../ledger/read.js';
import { CommandEnd, EXIT, print, say } from './output.js';
import { misuse, readCount, readDuration } from './read-flags.js';

const STATES = ['held', 'dispatched', 'unknown', 'settled', 'released'];
const COUNT_MAX = 10_000;

export interface SelectFlags {
  readonly state?: string;
  readonly olderThan?: string;
  readonly account?: string;
  readonly task?: string;
  readonly needsOperator?: true;
  readonly count?: string;
  readonly json?: true;
}

export function withSelection(command: Command): Command {
  return command
    .option('--state <state>', STATES.join(', '))
    .option('--older-than <duration>', 'unknown for longer than this, such as 15m')
    .option('--account <id>', 'of this account')
    .option('--task <id>', 'of this task')
    .option('--needs-operator', 'that somebody must look at')
    .option('--json', 'print JSON');
}

export function filterOf(flags: SelectFlags): OperationFilter {
  const { state, olderThan, account, task, needsOperator, count } = flags;
  if (state !== undefined && !STATES.includes(state)) {
    throw misuse('--state', `is "${state}"; give one of ${STATES.join(', ')}`);
  }
  return {
    countMax: count === undefined ? COUNT_MAX : readCount('--count', count),
    ...(state !== undefined && { state }),
    ...(olderThan !== undefined && { olderThanMs: readDuration('--older-than', olderThan) }),
    ...(account !== undefined && { accountId: account }),
    ...(task !== undefined && { taskId: task }),
    ...(needsOperator === true && { needsOperator }),
  };
}

/** Throws CommandEnd where there is none, or more than one. */
export async function oneOperation(
  ledger: Ledger,
  id: string,
  accountId: string | undefined,
): Promise<OperationRow> {
  const found = await listOperations(ledger, {
    id,
    countMax: 20,
    ...(accountId !== undefined && { accountId }),
  });
  const [row] = found;
  if (row === undefined) throw unknownOperation(id);
  if (found.length > 1) {
    const accounts = found.map((one) => one.account_id).join(', ');
    throw misuse(
      '<id>',
      `"${id}" is used by several accounts; give --account with one of ${accounts}`,
    );
  }
  return row;
}

export function unknownOperation(id: string): CommandEnd {
  return new CommandEnd(EXIT.refused, `operation "${id}" is unknown; see: npx holdfast ops list`);
}

/** The named ones, or all that are open and fit. */
export async function selectOperations(
  ledger: Ledger,
  ids: readonly string[],
  flags: SelectFlags,
): Promise<OperationRow[]> {
  if (ids.length > 0) {
    const rows: OperationRow[] = [];
    for (const id of ids) rows.push(await oneOperation(ledger, id, flags.account));
    return rows;
  }
  const filter = filterOf(flags);
  if (Object.keys(filter).length === 1) {
    throw misuse(
      '<ids>',
      'are missing; name operations, or say which with --state, --task, --account or --older-than',
    );
  }
  return listOperations(ledger, { isOpen: true, ...filter });
}

/** What an act would touch: told before it begins. */
export function tellSelection(rows: readonly OperationRow[], what: string): void {
  const sums = new Map<Unit, bigint>();
  for (const row of rows) sums.set(row.unit, (sums.get(row.unit) ?? 0n) + row.held_amount);
  const held = [...sums].map(([unit, sum]) => say(sum, unit)).join(' and ') || 'nothing';
  const unknown = rows.filter((row) => row.state === 'unknown').length;
  process.stderr.write(
    `${what}: ${rows.length} operation${rows.length === 1 ? '' : 's'}, holding ${held}, ${unknown} of them unknown\n`,
  );
}

export function printNothing(flags: SelectFlags): void {
  if (flags.json === true) print('[]');
  else print('(none)');
}
