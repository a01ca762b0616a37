// Setting up servers that were given: the ledger's schema and roles, Temporal's search attributes,
// and what the configuration file declares.

import type { Command } from 'commander';
import { DEFAULT_FILE } from '../../config/config.js';
import { type FileConfig, loadConfigFile } from '../../config/config-file.js';
import { createAccount, createBudget, setPrice } from '../../ledger/administer.js';
import { setUpLedger } from '../../ledger/set-up.js';
import {
  currentConfig,
  currentRun,
  describeDatabase,
  nothingRunning,
  withLedger,
} from '../context.js';
import { formatAmount } from '../../domain/money.js';
import { CommandEnd, EXIT, print, printJson, printTable, withProgress } from '../output.js';
import { registerSetUpTemporal } from './set-up-temporal.js';

export function registerSetUp(program: Command): void {
  registerSetUpTemporal(program.command('setup').description('prepare a server that was given'));
  program
    .command('db')
    .description('the ledger database')
    .command('setup')
    .description("create database, schema and the application's role; twice without harm")
    .option('--test', 'a test database, which can be told the time')
    .addHelpText(
      'after',
      '\nExample:\n  DATABASE_ADMIN_URL=postgres://owner:…@host/holdfast DATABASE_URL=postgres://app:…@host/holdfast npx holdfast db setup',
    )
    .action(setUpDatabase);
  const config = program.command('config').description('the configuration file');
  config
    .command('check [file]')
    .description('tell what it declares, or all that is wrong with it')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast config check holdfast.yaml')
    .action(check);
  config
    .command('apply [file]')
    .description(
      'create the accounts, budgets and prices it declares; twice without harm. ' +
        'Without a file: HOLDFAST_CONFIG, else holdfast.yaml here, else that of a running npm start',
    )
    .addHelpText('after', '\nExample:\n  npx holdfast config apply holdfast.yaml')
    .action(apply);
}

async function setUpDatabase(flags: { test?: true }): Promise<void> {
  const { databaseAdminUrl, databaseUrl } = currentConfig();
  if (databaseAdminUrl === undefined) throw nothingRunning('DATABASE_ADMIN_URL');
  if (databaseUrl === undefined) throw nothingRunning('DATABASE_URL');
  checkPair();
  const { username, password } = new URL(databaseUrl);
  const role = decodeURIComponent(username);
  if (role === '') {
    throw new CommandEnd(
      EXIT.misuse,
      "DATABASE_URL names no role; give the application's: postgres://app:password@host:port/database",
    );
  }
  print(`database ${describeDatabase(databaseAdminUrl)}, application's role ${role}`);
  if (new URL(databaseUrl).pathname !== new URL(databaseAdminUrl).pathname) {
    process.stderr.write(
      `note: DATABASE_URL names another database: ${describeDatabase(databaseUrl)}\n`,
    );
  }
  const applied = await withProgress(
    'migrating',
    setUpLedger({
      adminUrl: databaseAdminUrl,
      role: { name: role, password: decodeURIComponent(password) },
      isTest: flags.test === true,
    }),
  );
  print(applied.length === 0 ? 'the ledger is up to date' : `applied ${applied.join(', ')}`);
}

/** One address of a user's and one of the running stack would set up a role for the wrong database. */
function checkPair(): void {
  if (currentRun() === undefined) return;
  const given = ['DATABASE_ADMIN_URL', 'DATABASE_URL'].filter(
    (name) => process.env[name] !== undefined,
  );
  if (given.length === 1) {
    throw new CommandEnd(
      EXIT.misuse,
      `only ${given.join('')} is set, and npm start runs here with addresses of its own; ` +
        'set both DATABASE_ADMIN_URL and DATABASE_URL, or stop it first with: npx holdfast stop',
    );
  }
}

function check(file: string | undefined, flags: { json?: true }): void {
  const path = file ?? process.env['HOLDFAST_CONFIG'] ?? DEFAULT_FILE;
  const config = loadConfigFile(path, process.env);
  if (flags.json === true) {
    // Secrets stay out: what a provider is called and where it is, never its key.
    printJson({
      ...config,
      providers: config.providers.map(({ name, kind, baseUrl }) => ({ name, kind, baseUrl })),
    });
    return;
  }
  print(`${path} is right`);
  printTable(
    ['provider', 'kind', 'address'],
    config.providers.map((one) => [one.name, one.kind, one.baseUrl]),
  );
  print('');
  printTable(
    ['route', 'provider', 'model', 'bound at most', 'fallback'],
    config.routes.map((route) => [
      route.route,
      route.provider,
      route.model,
      route.kind === 'call'
        ? `output_tokens=${route.maxTokensMax}`
        : Object.entries(route.boundMax)
            .map(([dimension, most]) => `${dimension}=${most}`)
            .join(', '),
      route.fallbacks.join(', ') || '-',
    ]),
  );
  print('');
  printTable(
    ['budget', 'limit', 'scopes'],
    config.budgets.map((budget) => [
      budget.budgetId,
      budget.limitAmount === undefined ? 'no limit' : formatAmount(budget.limitAmount, budget.unit),
      budget.scopes.map((scope) => `${scope.kind}=${scope.value}`).join(', ') || '-',
    ]),
  );
}

async function apply(named: string | undefined): Promise<void> {
  const { databaseUrl, filePath } = currentConfig();
  const path = named ?? filePath;
  if (path === undefined) {
    throw new CommandEnd(
      EXIT.misuse,
      'there is no holdfast.yaml here; name one, as in: npx holdfast config apply holdfast.yaml',
    );
  }
  const file = loadConfigFile(path, 'without_secrets');
  if (databaseUrl === undefined) throw nothingRunning('DATABASE_URL');
  print(`${path} to database ${describeDatabase(databaseUrl)}`);
  if (file.accounts.length + file.budgets.length + file.prices.length === 0) {
    print('nothing to apply: it declares no account, no budget and no price');
    return;
  }
  const rows = await withProgress('applying', applyFile(file));
  printTable(['what', 'id', 'status'], rows);
  if (rows.some((row) => row[2] === 'account_not_found')) {
    throw new CommandEnd(
      EXIT.refused,
      'a budget names an account that neither exists nor stands in the file',
    );
  }
  if (rows.some((row) => row[2] === 'exists_otherwise')) {
    throw new CommandEnd(EXIT.refused, 'what exists with other terms was not changed');
  }
}

function applyFile(file: FileConfig): Promise<string[][]> {
  return withLedger(async (ledger) => {
    const rows: string[][] = [];
    for (const account of file.accounts) {
      rows.push(['account', account.accountId, await createAccount(ledger, account)]);
    }
    for (const budget of file.budgets) {
      rows.push(['budget', budget.budgetId, await createBudget(ledger, budget)]);
    }
    for (const price of file.prices) {
      rows.push(['price', price.route, await setPrice(ledger, price)]);
    }
    return rows;
  });
}
