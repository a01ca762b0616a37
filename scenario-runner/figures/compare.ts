// Figures
// -------
// Compares an expectation with what is: budgets and operations from the ledger's views, requests and
// charges from the provider's own truth, workflows from Temporal.

import { readBudget } from '../../ledger/read.js';
import type { Expectation } from '../language/expect.js';
import { sayAmount, toAmount } from '../play/numbers.js';
import { check, type Play } from '../play/play.js';
import { chargedBy } from '../play/provider-control.js';
import { countUnmatchedReports } from '../play/raw-ledger.js';
import { unitOf } from '../play/settings.js';
import { compareCall } from './call-figures.js';
import { compareHeard, compareOutcomes } from './heard.js';
import { compareTask } from './task-figures.js';

const BUDGET_VIEW = 'ledger.budget_view';
const TRUTH = 'GET /truth';

export async function compare(play: Play, expected: Expectation, line: number): Promise<void> {
  for (const [name, figures] of Object.entries(expected.budgets ?? {})) {
    await compareBudget(play, { name, figures, line });
  }
  for (const [name, figures] of Object.entries(expected.calls ?? {})) {
    await compareCall(play, { name, figures, line });
  }
  for (const [name, figures] of Object.entries(expected.tasks ?? {})) {
    await compareTask(play, { name, figures, line });
  }
  if (expected.provider !== undefined) await compareProvider(play, expected.provider, line);
  compareHeard(play, expected, line);
  await compareOutcomes(play, expected, line);
  if (expected.unmatched_reports !== undefined) {
    check(play, {
      name: 'unmatched reports',
      expected: String(expected.unmatched_reports),
      actual: String(await countUnmatchedReports(play.stage.databaseAdminUrl)),
      source: 'ledger.unmatched_report_view',
      line,
    });
  }
}

async function compareBudget(
  play: Play,
  { name, figures, line }: Told<NonNullable<Expectation['budgets']>[string]>,
): Promise<void> {
  const balance = await readBudget(play.stage.ledger, play.nameOf(name));
  const unit = unitOf(play.scenario, name);
  const actual = {
    limit: balance?.limit_amount ?? undefined,
    captured: balance?.captured_amount,
    held: balance?.held_amount,
    available: balance?.available_amount ?? undefined,
    unknown: balance?.unknown_amount,
    overrun: balance?.overrun_amount,
  };
  for (const [word, text] of entriesOf(figures)) {
    const value = actual[word];
    check(play, {
      name: `budget ${name} ${word}`,
      expected: sayAmount(toAmount(text, unit, play.scenario.numbers), unit),
      actual: value === undefined ? 'no limit' : sayAmount(value, unit),
      source: BUDGET_VIEW,
      line,
    });
  }
}

interface Told<F> {
  readonly name: string;
  readonly figures: F;
  readonly line: number;
}

function entriesOf<F extends object>(
  figures: F,
): (readonly [keyof F & string, NonNullable<F[keyof F]>])[] {
  return Object.entries(figures).filter(([, value]) => value !== undefined) as never;
}

async function compareProvider(
  play: Play,
  wanted: NonNullable<Expectation['provider']>,
  line: number,
): Promise<void> {
  const requests = await play.stage.provider.requestsAfter(play.fromSeq);
  const actual = {
    received: BigInt(requests.length),
    accepted: BigInt(requests.filter((request) => request.outcome === 'accepted').length),
    charged: chargedBy(requests),
    cancels: BigInt((await play.stage.provider.truth()).cancels.length),
  };
  for (const [word, text] of entriesOf(wanted)) {
    const expected = toAmount(text, 'credit', play.scenario.numbers);
    check(play, {
      name: `provider ${word}`,
      expected: String(expected),
      actual: String(actual[word]),
      source: TRUTH,
      line,
    });
  }
}

export type Balances = Readonly<Record<string, Readonly<Record<string, string | null>>>>;

/** Every budget of the scenario as it stands; null where there is no limit, never 0. */
export async function readBalances(play: Play, scenario: Play['scenario']): Promise<Balances> {
  const balances: Record<string, Record<string, string | null>> = {};
  for (const name of Object.keys(scenario.given.budgets)) {
    const row = await readBudget(play.stage.ledger, play.nameOf(name));
    if (row === undefined) continue;
    const say = (value: bigint | null): string | null =>
      value === null ? null : sayAmount(value, row.unit);
    balances[name] = {
      limit: say(row.limit_amount),
      captured: say(row.captured_amount),
      held: say(row.held_amount),
      unknown: say(row.unknown_amount),
      available: say(row.available_amount),
      overrun: say(row.overrun_amount),
    };
  }
  return balances;
}
