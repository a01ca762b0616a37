import type { Command } from 'commander';
import { explainOperation } from '../../domain/explain.js';
import { describeRefusal } from '../../domain/refusal.js';
import {
  listOperations,
  type OperationRow,
  readOperation,
  readRefusals,
  readTimeline,
} from '../../ledger/read.js';
import { withLedger } from '../context.js';
import { CommandEnd, EXIT, print, printJson, printTable, say, sayAge } from '../output.js';
import { misuse, readCount } from '../read-flags.js';

const STATES = ['held', 'dispatched', 'unknown', 'settled', 'released'];

export function registerOps(program: Command): void {
  const ops = program.command('ops').description('operations: paid pieces of work');
  ops
    .command('list')
    .description('the newest operations')
    .option('--state <state>', STATES.join(', '))
    .option('--count <n>', 'how many at most', '50')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast ops list --state unknown')
    .action(async (flags: { state?: string; count: string; json?: true }) => {
      const { state } = flags;
      if (state !== undefined && !STATES.includes(state)) {
        throw misuse('--state', `is "${state}"; give one of ${STATES.join(', ')}`);
      }
      const rows = await withLedger((ledger) =>
        listOperations(ledger, {
          countMax: readCount('--count', flags.count),
          ...(state !== undefined && { state }),
        }),
      );
      if (flags.json === true) printJson(rows);
      else list(rows);
    });
  ops
    .command('show <id>')
    .description('one operation: where it stands, what happened, why it was refused')
    .option('--account <id>', 'when several accounts use the same id')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast ops show op-1')
    .action(show);
}

function list(rows: readonly OperationRow[]): void {
  printTable(
    ['account', 'operation', 'state', 'route', 'held', 'charged', 'unknown for', 'attempts'],
    rows.map((row) => [
      row.account_id,
      row.operation_id,
      row.state,
      row.route,
      say(row.held_amount, row.unit),
      say(row.charged_amount, row.unit, row.closed_at === null ? 'unknown' : '-'),
      sayAge(row.unknown_since, row.read_at),
      String(row.attempt_count),
    ]),
  );
}

async function show(id: string, flags: { account?: string; json?: true }): Promise<void> {
  await withLedger(async (ledger) => {
    const found = (await listOperations(ledger, { id, countMax: 20 })).filter(
      (row) => flags.account === undefined || row.account_id === flags.account,
    );
    const refusals = await readRefusals(ledger, id);
    const [row] = found;
    if (found.length > 1) {
      const accounts = found.map((one) => one.account_id).join(', ');
      throw misuse(
        '<id>',
        `"${id}" is used by several accounts; give --account with one of ${accounts}`,
      );
    }
    if (row === undefined && refusals.length === 0) {
      throw new CommandEnd(
        EXIT.refused,
        `operation "${id}" is unknown; see: npx holdfast ops list`,
      );
    }
    const snapshot =
      row === undefined
        ? undefined
        : await readOperation(ledger, { accountId: row.account_id, operationId: row.operation_id });
    const events = row === undefined ? [] : await readTimeline(ledger, row.operation_key);
    if (flags.json === true) {
      printJson({ snapshot: snapshot ?? null, events, refusals });
      return;
    }
    if (snapshot !== undefined) print(`${explainOperation(snapshot)}\n`);
    for (const refusal of refusals) {
      print(`refused ${refusal.refusal_count} times: ${describeRefusal(refusal.numbers)}`);
    }
    printTable(
      ['at', 'what', 'attempt', 'from', 'to', 'evidence', 'detail'],
      events.map((event) => [
        event.recorded_at.toISOString(),
        event.kind,
        event.attempt_no === null ? '-' : String(event.attempt_no),
        event.from_state,
        event.to_state,
        event.evidence_source === null
          ? '-'
          : `${event.evidence_source} ${event.evidence_reference ?? ''}`,
        JSON.stringify(event.detail),
      ]),
    );
  });
}
