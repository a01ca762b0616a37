import type { Command } from 'commander';
import { explainOperation } from '../../domain/explain.js';
import { describeRefusal } from '../../domain/refusal.js';
import {
  listOperations,
  type OperationRow,
  readOperationByKey,
  readRefusals,
  readTimeline,
} from '../../ledger/read.js';
import { withLedger } from '../context.js';
import { print, printJson, printTable, say, sayAge } from '../output.js';
import {
  filterOf,
  oneOperation,
  type SelectFlags,
  unknownOperation,
  withSelection,
} from '../select-operations.js';
import { registerActs } from './ops-acts.js';

export function registerOps(program: Command): void {
  const ops = program.command('ops').description('operations: paid pieces of work');
  withSelection(ops.command('list').description('the newest operations'))
    .option('--count <n>', 'how many at most', '50')
    .addHelpText('after', '\nExample:\n  npx holdfast ops list --state unknown --older-than 15m')
    .action(async (flags: SelectFlags) => {
      const filter = filterOf(flags);
      const rows = await withLedger((ledger) => listOperations(ledger, filter));
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
  ops
    .command('explain <id>')
    .description('in plain English: where it stands, and what happens next')
    .option('--account <id>', 'when several accounts use the same id')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast ops explain op-1')
    .action(explain);
  registerActs(ops);
}

function list(rows: readonly OperationRow[]): void {
  printTable(
    [
      'account',
      'operation',
      'kind',
      'state',
      'route',
      'held',
      'charged',
      'unknown for',
      'cancel',
      'look',
    ],
    rows.map((row) => [
      row.account_id,
      row.operation_id,
      row.kind,
      row.state,
      row.route,
      say(row.held_amount, row.unit),
      say(row.charged_amount, row.unit, row.closed_at === null ? 'unknown' : '-'),
      sayAge(row.unknown_since, row.read_at),
      row.cancel,
      row.needs_operator ? 'yes' : '-',
    ]),
  );
}

interface OneFlags {
  readonly account?: string;
  readonly json?: true;
}

async function explain(id: string, flags: OneFlags): Promise<void> {
  await withLedger(async (ledger) => {
    const row = await oneOperation(ledger, id, flags.account);
    const snapshot = await readOperationByKey(ledger, row.operation_key);
    if (snapshot === undefined) throw unknownOperation(id);
    const explanation = explainOperation(snapshot);
    if (flags.json === true) printJson({ operationKey: row.operation_key, explanation });
    else print(explanation);
  });
}

async function show(id: string, flags: OneFlags): Promise<void> {
  await withLedger(async (ledger) => {
    const refusals = await readRefusals(ledger, id);
    // What was refused before anything was held has no operation, and its refusals are all there is.
    const row = await oneOperation(ledger, id, flags.account).catch((error: unknown) => {
      if (refusals.length > 0) return undefined;
      throw error;
    });
    const snapshot =
      row === undefined ? undefined : await readOperationByKey(ledger, row.operation_key);
    const events = row === undefined ? [] : await readTimeline(ledger, row.operation_key);
    if (flags.json === true) {
      printJson({ snapshot: snapshot ?? null, events, refusals });
      return;
    }
    if (snapshot !== undefined) {
      print(`${explainOperation(snapshot)}\n`);
      print(`Supervisor: workflow ${snapshot.workflowId}\n`);
    }
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
