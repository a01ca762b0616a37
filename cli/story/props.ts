// What every act of the story needs.

import { type Amount, amount } from '../../domain/money.js';
import { createAccount, createBudget } from '../../ledger/administer.js';
import { type BudgetBalance, readBudget } from '../../ledger/read.js';
import type { Stage } from '../../scenario-runner/stage.js';
import type { FigureSheet } from './figures.js';

export const STORY_ROUTE = 'fake-direct';
/** Its dispatch limit is long, so that a worker can be killed in mid-call. */
export const PATIENT_ROUTE = 'fake-priced';
export const MAX_TOKENS = 40;

export interface StoryOptions {
  readonly stage: Stage;
  /** Credits a completion token. */
  readonly price: number;
  readonly limit: bigint;
  readonly sheet: FigureSheet;
  readonly say: (line: string) => void;
  /** Ends the ids of this telling, so that the same ledger can hear the story again. */
  readonly suffix: string;
}

export interface StoryProps extends StoryOptions {
  /** What one call can cost at most, in credits. */
  readonly worstCase: Amount;
}

/** An account with one budget of its own. */
export async function openAccount(
  props: StoryProps,
  name: (typeof STORY_ACCOUNTS)[number],
): Promise<string> {
  const { ledger } = props.stage;
  const accountId = `${name}-${props.suffix}`;
  await createAccount(ledger, { accountId });
  await createBudget(ledger, {
    budgetId: accountId,
    unit: 'credit',
    limitAmount: amount(props.limit),
    scopes: [{ kind: 'account', value: accountId }],
  });
  return accountId;
}

export async function balanceOf(props: StoryProps, budgetId: string): Promise<BudgetBalance> {
  const balance = await readBudget(props.stage.ledger, budgetId);
  if (balance === undefined) throw new Error(`budget ${budgetId} is gone`);
  return balance;
}

export const request = { messages: [{ role: 'user', content: 'Count to forty.' }] };

/** The accounts, and budgets of the same name, that the acts use. */
export const STORY_ACCOUNTS = ['forty', 'kill', 'lights'] as const;
