import type { Command } from 'commander';
import {
  createAccount,
  createBudget,
  type Scope,
  type ScopeKind,
  setBudgetFrozen,
  setPrice,
} from '../../ledger/administer.js';
import { type BudgetBalance, readBudget, readBudgets } from '../../ledger/read.js';
import { ratesOf } from '../../config/config-file.js';
import { withLedger } from '../context.js';
import { CommandEnd, EXIT, print, printJson, printTable, say, sayAge } from '../output.js';
import { misuse, readAmount, readId, readUnit } from '../read-flags.js';

const SCOPE_KINDS = ['account', 'team', 'organisation', 'tag', 'end_user', 'task'];

interface CreateFlags {
  readonly unit: string;
  readonly limit: string;
  readonly account: readonly string[];
  readonly scope: readonly string[];
  readonly json?: true;
}

export function registerBudget(program: Command): void {
  const budget = program.command('budget').description('budgets: limits over scopes');
  budget
    .command('create <id>')
    .description('create a budget; repeating it changes nothing')
    .requiredOption('--unit <unit>', 'usd or credit')
    .requiredOption('--limit <amount>', 'such as 100 or 0.25, or: none')
    .option('--account <id...>', 'accounts that are charged to it', [])
    .option('--scope <kind=value...>', 'other scopes, such as team=search', [])
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExample:\n  npx holdfast budget create team-a --unit credit --limit 100 --account acme',
    )
    .action(create);
  budget
    .command('show <id>')
    .description('one budget with its balance')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast budget show team-a')
    .action(async (id: string, flags: { json?: true }) => {
      const balance = await withLedger((ledger) => readBudget(ledger, readId('<id>', id)));
      if (balance === undefined) {
        throw new CommandEnd(
          EXIT.refused,
          `budget "${id}" is unknown; see: npx holdfast budget list`,
        );
      }
      show([balance], flags.json);
    });
  budget
    .command('list')
    .description('all budgets with their balances')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast budget list --json')
    .action(async (flags: { json?: true }) => {
      show(await withLedger(readBudgets), flags.json);
    });
  registerFreeze(budget);
}

function registerFreeze(budget: Command): void {
  for (const isFrozen of [true, false]) {
    const name = isFrozen ? 'freeze' : 'unfreeze';
    budget
      .command(`${name} <id>`)
      .description(
        isFrozen ? 'refuse every new admission; running operations go on' : 'admit again',
      )
      .requiredOption('--by <name>', 'who does it')
      .requiredOption('--reason <text>', 'why')
      .addHelpText(
        'after',
        `\nExample:\n  npx holdfast budget ${name} team-a --by ana --reason "runaway agent"`,
      )
      .action(async (id: string, flags: { by: string; reason: string }) => {
        const status = await withLedger((ledger) =>
          setBudgetFrozen(ledger, {
            budgetId: id,
            isFrozen,
            actor: flags.by,
            reason: flags.reason,
          }),
        );
        if (status === 'budget_not_found')
          throw new CommandEnd(EXIT.refused, `budget "${id}" is unknown`);
        print(`budget "${id}" is ${status}`);
      });
  }
}

async function create(id: string, flags: CreateFlags): Promise<void> {
  const unit = readUnit(flags.unit);
  const scopes: Scope[] = [
    ...flags.account.map((value): Scope => ({
      kind: 'account',
      value: readId('--account', value),
    })),
    ...flags.scope.map(readScope),
  ];
  const limitAmount = flags.limit === 'none' ? undefined : readAmount('--limit', flags.limit, unit);
  const budgetId = readId('<id>', id);
  const status = await withLedger((ledger) =>
    createBudget(ledger, { budgetId, unit, limitAmount, scopes }),
  );
  if (status === 'account_not_found') {
    throw new CommandEnd(
      EXIT.refused,
      `budget "${id}" was not created: one of ${flags.account.map((name) => `"${name}"`).join(', ')} is no account; create it first with: npx holdfast account create <id>`,
    );
  }
  end(`budget "${id}"`, status, flags.json);
}

function readScope(text: string): Scope {
  const [kind = '', ...rest] = text.split('=');
  if (!SCOPE_KINDS.includes(kind) || rest.length === 0) {
    throw misuse(
      '--scope',
      `is "${text}"; give kind=value with a kind of ${SCOPE_KINDS.join(', ')}`,
    );
  }
  return { kind: kind as ScopeKind, value: readId('--scope', rest.join('=')) };
}

function end(what: string, status: string, json: true | undefined): void {
  if (status === 'exists_otherwise') {
    throw new CommandEnd(EXIT.refused, `${what} exists with other terms; nothing was changed`);
  }
  if (json === true) printJson({ status });
  else print(`${what}: ${status}`);
}

function show(balances: readonly BudgetBalance[], json: true | undefined): void {
  if (json === true) {
    printJson(balances);
    return;
  }
  printTable(
    [
      'budget',
      'limit',
      'captured',
      'held',
      'of which unknown',
      'oldest',
      'available',
      'overrun',
      'frozen',
    ],
    balances.map((row) => [
      row.budget_id,
      say(row.limit_amount, row.unit, 'no limit'),
      say(row.captured_amount, row.unit),
      say(row.held_amount, row.unit),
      `${say(row.unknown_amount, row.unit)} (${row.unknown_count})`,
      sayAge(row.unknown_oldest),
      say(row.available_amount, row.unit, 'no limit'),
      say(row.overrun_amount, row.unit),
      row.frozen_at === null ? 'no' : 'yes',
    ]),
  );
}

export function registerAccount(program: Command): void {
  program
    .command('account')
    .description('accounts: who pays')
    .command('create <id>')
    .description('create an account; repeating it changes nothing')
    .option('--team <id>', 'its team')
    .option('--organisation <id>', 'its organisation')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast account create acme --team search')
    .action(async (id: string, flags: { team?: string; organisation?: string; json?: true }) => {
      const { team, organisation } = flags;
      const account = {
        accountId: readId('<id>', id),
        ...(team !== undefined && { team: readId('--team', team) }),
        ...(organisation !== undefined && {
          organisation: readId('--organisation', organisation),
        }),
      };
      const status = await withLedger((ledger) => createAccount(ledger, account));
      end(`account "${id}"`, status, flags.json);
    });
}

interface PriceFlags {
  readonly unit: string;
  readonly json?: true;
  readonly perRequest?: string;
  readonly perInputToken?: string;
  readonly perOutputToken?: string;
  readonly perMillionInputTokens?: string;
  readonly perMillionOutputTokens?: string;
  readonly perTick?: string;
  readonly perSecond?: string;
  readonly perUnit?: string;
}

export function registerPrice(program: Command): void {
  program
    .command('price')
    .description('prices: what a route costs')
    .command('set <route>')
    .description('a new version of a price; running operations keep theirs')
    .requiredOption('--unit <unit>', 'usd or credit')
    .option('--per-request <amount>', 'alone: a flat price, tokens are free')
    .option('--per-input-token <amount>')
    .option('--per-output-token <amount>')
    .option('--per-million-input-tokens <amount>')
    .option('--per-million-output-tokens <amount>')
    .option('--per-tick <amount>', 'of a route for jobs; so are --per-second and --per-unit')
    .option('--per-second <amount>')
    .option('--per-unit <amount>')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExample:\n  npx holdfast price set gpt --unit usd --per-million-input-tokens 2.50 --per-million-output-tokens 10',
    )
    .action(async (route: string, flags: PriceFlags) => {
      const unit = readUnit(flags.unit);
      readId('<route>', route);
      const rates = ratesOf(
        {
          per_request: flags.perRequest,
          per_input_token: flags.perInputToken,
          per_output_token: flags.perOutputToken,
          per_million_input_tokens: flags.perMillionInputTokens,
          per_million_output_tokens: flags.perMillionOutputTokens,
          per_tick: flags.perTick,
          per_second: flags.perSecond,
          per_unit: flags.perUnit,
        },
        (field, text) => readAmount(`--${field.replaceAll('_', '-')}`, text, unit),
      );
      if (rates.every((rate) => rate.dimension === 'request' && flags.perRequest === undefined)) {
        throw misuse('--per-…', 'is missing; give at least one price, zero included');
      }
      const status = await withLedger((ledger) => setPrice(ledger, { route, unit, rates }));
      end(`price of "${route}"`, status, flags.json);
    });
}
