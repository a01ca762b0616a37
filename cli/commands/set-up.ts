// Setting up servers that were given: the ledger's schema and roles, Temporal's search attributes,
// and what the configuration file declares.

import type { Command } from 'commander';
import { loadConfigFile } from '../../config/config-file.js';
import { createAccount, createBudget, setPrice } from '../../ledger/administer.js';
import { setUpLedger } from '../../ledger/set-up.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';
import { currentConfig, nothingRunning, withLedger, withTemporal } from '../context.js';
import { formatAmount } from '../../domain/money.js';
import { CommandEnd, EXIT, print, printJson, printTable, withProgress } from '../output.js';

/** Temporal's own numbers of these types, as its API defines them. */
const INDEXED_VALUE_TYPES = { Keyword: 2, Int: 3, Bool: 5, Datetime: 6 } as const;

export function registerSetUp(program: Command): void {
  program
    .command('setup')
    .description('prepare a server that was given')
    .command('temporal')
    .description('register the search attributes; twice without harm')
    .addHelpText(
      'after',
      '\nExample:\n  TEMPORAL_ADDRESS=127.0.0.1:7233 npx holdfast setup temporal',
    )
    .action(setUpTemporal);
  program
    .command('db')
    .description('the ledger database')
    .command('setup')
    .description("create database, schema and the application's role; twice without harm")
    .option('--test', 'a test database, which can be told the time')
    .addHelpText(
      'after',
      '\nExample:\n  DATABASE_ADMIN_URL=postgres://owner:…@host/ledger DATABASE_URL=postgres://app:…@host/ledger npx holdfast db setup',
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
    .command('apply')
    .description('create the accounts, budgets and prices it declares; twice without harm')
    .addHelpText('after', '\nExample:\n  HOLDFAST_CONFIG=holdfast.yaml npx holdfast config apply')
    .action(apply);
}

async function setUpTemporal(): Promise<void> {
  await withTemporal(async (client) => {
    const { namespace } = client.options;
    await withProgress(
      'registering',
      client.connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(
          Object.entries(SEARCH_ATTRIBUTE_TYPES).map(([name, type]) => [
            name,
            INDEXED_VALUE_TYPES[type],
          ]),
        ),
      }),
    );
    print(`namespace ${namespace} knows ${Object.keys(SEARCH_ATTRIBUTE_TYPES).join(', ')}`);
  });
}

async function setUpDatabase(flags: { test?: true }): Promise<void> {
  const { databaseAdminUrl, databaseUrl } = currentConfig();
  if (databaseAdminUrl === undefined) throw nothingRunning('DATABASE_ADMIN_URL');
  if (databaseUrl === undefined) throw nothingRunning('DATABASE_URL');
  const { username, password } = new URL(databaseUrl);
  const applied = await withProgress(
    'migrating',
    setUpLedger({
      adminUrl: databaseAdminUrl,
      role: { name: decodeURIComponent(username), password: decodeURIComponent(password) },
      isTest: flags.test === true,
    }),
  );
  print(applied.length === 0 ? 'the ledger is up to date' : `applied ${applied.join(', ')}`);
}

function check(file: string | undefined, flags: { json?: true }): void {
  const path = file ?? process.env['HOLDFAST_CONFIG'] ?? 'holdfast.yaml';
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
    ['route', 'provider', 'model', 'max tokens', 'fallback'],
    config.routes.map((route) => [
      route.route,
      route.provider,
      route.model,
      String(route.maxTokensMax),
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

async function apply(): Promise<void> {
  const { file } = currentConfig();
  if (file.path === null) {
    throw new CommandEnd(
      EXIT.misuse,
      'there is no holdfast.yaml here; name one with HOLDFAST_CONFIG',
    );
  }
  await withLedger(async (ledger) => {
    const rows: string[][] = [];
    for (const account of file.accounts) {
      rows.push(['account', account.accountId, await createAccount(ledger, account)]);
    }
    for (const budget of file.budgets) {
      rows.push(['budget', budget.budgetId, await createBudget(ledger, budget)]);
    }
    for (const price of file.prices)
      rows.push(['price', price.route, await setPrice(ledger, price)]);
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
  });
}
