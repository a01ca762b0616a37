// What the callers heard, how their calls ended, and what the ledger recorded of refusals.

import { readRefusals, type RefusalRow } from '../../ledger/read.js';
import type { Expectation } from '../language/expect.js';
import { reasonOf } from '../play/calls.js';
import { toAmount } from '../play/numbers.js';
import { check, operationOf, type Play } from '../play/play.js';

export function compareHeard(play: Play, expected: Expectation, line: number): void {
  const verdicts = [...play.calls.values()].map((call) => call.verdict);
  const source = 'what the callers hear';
  const count = (isCounted: (verdict: (typeof verdicts)[number]) => boolean): string =>
    String(verdicts.filter(isCounted).length);
  if (expected.admitted !== undefined) {
    const actual = count((verdict) => verdict?.status === 'admitted');
    check(play, { name: 'admitted', expected: String(expected.admitted), actual, source, line });
  }
  if (typeof expected.refused === 'number') {
    const actual = count((verdict) => verdict?.status === 'refused');
    check(play, { name: 'refused', expected: String(expected.refused), actual, source, line });
    return;
  }
  for (const [reason, wanted] of Object.entries(expected.refused ?? {})) {
    const actual = count((verdict) => reasonOf(verdict) === reason);
    check(play, { name: `refused ${reason}`, expected: String(wanted), actual, source, line });
  }
}

export async function compareOutcomes(
  play: Play,
  expected: Expectation,
  line: number,
): Promise<void> {
  const calls = [...play.calls.values()];
  if (expected.outcomes !== undefined) {
    const snapshots = await Promise.all(calls.map((call) => operationOf(play, call)));
    for (const [outcome, wanted] of Object.entries(expected.outcomes)) {
      const actual = snapshots.filter((each) => (each?.outcome ?? 'open') === outcome).length;
      check(play, {
        ...{ name: `outcomes ${outcome}`, expected: String(wanted), actual: String(actual) },
        ...{ source: 'ledger.read_operation', line },
      });
    }
  }
  const operations = new Set(calls.map(({ operationId }) => operationId));
  for (const [reason, wanted] of Object.entries(expected.refusals ?? {})) {
    const rows = (
      await Promise.all([...operations].map((id) => readRefusals(play.stage.ledger, id)))
    )
      .flat()
      .filter((row) => row.reason === reason && isOurs(play, row.account_id));
    if (wanted !== undefined) compareRefusals(play, { reason, wanted, rows, line });
  }
}

function isOurs(play: Play, accountId: string): boolean {
  return [...play.calls.values()].some((call) => call.accountId === accountId);
}

function compareRefusals(
  play: Play,
  told: {
    readonly reason: string;
    readonly wanted: NonNullable<NonNullable<Expectation['refusals']>['exceeds_available']>;
    readonly rows: readonly RefusalRow[];
    readonly line: number;
  },
): void {
  const { reason, wanted, rows, line } = told;
  const source = 'ledger.refusal_view';
  if (wanted.count !== undefined) {
    const actual = String(rows.reduce((sum, row) => sum + row.refusal_count, 0));
    check(play, {
      name: `refusals ${reason}`,
      expected: String(wanted.count),
      actual,
      source,
      line,
    });
  }
  for (const word of ['needed', 'available', 'held', 'unknown'] as const) {
    const text = wanted[word];
    if (text === undefined) continue;
    const seen = rows.map(({ numbers }) => numbers[`${word}Amount`] ?? 'not said');
    const unit = rows[0]?.numbers.unit ?? 'credit';
    const expected = toAmount(text, unit, play.scenario.numbers).toString();
    check(play, {
      ...{
        name: `refusals ${reason} ${word}`,
        expected,
        actual: [...new Set(seen)].join(',') || 'none',
      },
      ...{ source, line },
    });
  }
}
