// Administration: budgets, accounts, scopes, prices, freezes. Each can be repeated; the answer says
// whether it was done now, done before the same way, or done before otherwise.

import type { Amount, Unit } from '../domain/money.js';
import type { Rate } from '../domain/price-book.js';
import type { Ledger } from './connection.js';

export type CreateStatus = 'created' | 'exists' | 'exists_otherwise' | 'account_not_found';

export type ScopeKind = 'account' | 'team' | 'organisation' | 'tag' | 'end_user' | 'task';

export interface Scope {
  readonly kind: ScopeKind;
  readonly value: string;
}

async function statusOf(
  ledger: Ledger,
  name: string,
  call: { readonly parameters: string; readonly values: readonly unknown[] },
): Promise<string> {
  const rows = await ledger.query({
    name: `administer/${name}`,
    text: `select ledger.${name}(${call.parameters}) as status`,
    values: call.values,
  });
  return String(rows[0]?.['status']);
}

export async function createAccount(
  ledger: Ledger,
  account: { readonly accountId: string; readonly team?: string; readonly organisation?: string },
): Promise<CreateStatus> {
  return (await statusOf(ledger, 'create_account', {
    parameters: '$1, $2, $3',
    values: [account.accountId, account.team ?? null, account.organisation ?? null],
  })) as CreateStatus;
}

export interface NewBudget {
  readonly budgetId: string;
  readonly unit: Unit;
  /** Undefined is *no limit*, which is not a very high one. */
  readonly limitAmount?: Amount | undefined;
  readonly scopes: readonly Scope[];
}

export async function createBudget(ledger: Ledger, budget: NewBudget): Promise<CreateStatus> {
  return (await statusOf(ledger, 'create_budget', {
    parameters: "$1, $2, $3::bigint, 'none', 'UTC', $4::jsonb",
    values: [
      budget.budgetId,
      budget.unit,
      budget.limitAmount?.toString() ?? null,
      JSON.stringify(budget.scopes),
    ],
  })) as CreateStatus;
}

export async function addScope(
  ledger: Ledger,
  scope: Scope & { readonly budgetId: string },
): Promise<'created' | 'exists' | 'budget_not_found'> {
  return (await statusOf(ledger, 'add_scope', {
    parameters: '$1, $2, $3',
    values: [scope.budgetId, scope.kind, scope.value],
  })) as 'created' | 'exists' | 'budget_not_found';
}

/** A new version of what a route costs; every billable dimension is named, zero included. */
export async function setPrice(
  ledger: Ledger,
  price: { readonly route: string; readonly unit: Unit; readonly rates: readonly Rate[] },
): Promise<'created' | 'exists'> {
  const rates = Object.fromEntries(
    price.rates.map((rate) => [
      rate.dimension,
      { rateAmount: rate.rateAmount.toString(), perCount: Number(rate.perCount) },
    ]),
  );
  return (await statusOf(ledger, 'set_price', {
    parameters: '$1, $2, $3::jsonb',
    values: [price.route, price.unit, JSON.stringify(rates)],
  })) as 'created' | 'exists';
}

export async function setBudgetFrozen(
  ledger: Ledger,
  freeze: {
    readonly budgetId: string;
    readonly isFrozen: boolean;
    readonly actor: string;
    readonly reason: string;
  },
): Promise<'frozen' | 'unfrozen' | 'budget_not_found'> {
  return (await statusOf(ledger, 'set_budget_frozen', {
    parameters: '$1, $2, $3, $4',
    values: [freeze.budgetId, freeze.isFrozen, freeze.actor, freeze.reason],
  })) as 'frozen' | 'unfrozen' | 'budget_not_found';
}

/** The budget of one task of one account: no other account's work is charged to it. */
export async function openTaskBudget(
  ledger: Ledger,
  budget: {
    readonly accountId: string;
    readonly taskId: string;
    readonly unit: Unit;
    readonly limitAmount: Amount;
  },
): Promise<'created' | 'exists' | 'exists_otherwise'> {
  return (await statusOf(ledger, 'open_task_budget', {
    parameters: '$1, $2, $3, $4::bigint',
    values: [budget.accountId, budget.taskId, budget.unit, budget.limitAmount.toString()],
  })) as 'created' | 'exists' | 'exists_otherwise';
}
