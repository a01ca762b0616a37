import pino from 'pino';
import { describe, expect, test } from 'vitest';
import type { BudgetTotals, LedgerFigures } from '../../ledger/watch.js';
import { createBudgetLabels } from '../../worker/budget-labels.js';
import { createMetrics } from '../../worker/metrics.js';

const ids = (count: number): string[] => Array.from({ length: count }, (_, no) => `budget-${no}`);

const budget = (budgetId: string, unit: 'usd' | 'credit', limit: bigint | null): BudgetTotals => ({
  budget_id: budgetId,
  unit,
  limit_amount: limit,
  available_amount: limit,
  captured_amount: 2n,
  overrun_amount: 0n,
});

async function linesOf(figures: Partial<LedgerFigures>): Promise<string[]> {
  const nothing = {
    openByState: [],
    openByCancel: [],
    heldByProvider: [],
    unknownByProvider: [],
    budgets: [],
  };
  const { scrape } = createMetrics({
    watch: {
      figures: () => Promise.resolve({ ...nothing, ...figures }),
      brokenRules: () => Promise.resolve([]),
    },
    logger: pino({ level: 'silent' }),
  });
  return (await scrape()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

describe('budget labels', () => {
  test('up to the number every budget has its own name, also one called other', () => {
    const labelOf = createBudgetLabels(['other', 'b'], 2);
    expect(['other', 'b'].map(labelOf)).toEqual(['other', 'b']);
  });

  test('beyond it the oldest keep theirs, and one called other is among the others', () => {
    const labelOf = createBudgetLabels(['a', 'other', 'b', 'c'], 2);
    expect(['a', 'other', 'b', 'c'].map(labelOf)).toEqual(['a', 'other', 'b', 'other']);
  });

  test('of 102 budgets two are summed as other, with the limit of the one that has one', async () => {
    const budgets = [
      ...ids(100).map((id) => budget(id, 'credit', 10n)),
      budget('late-1', 'credit', 7n),
      budget('late-2', 'credit', null),
    ];
    const held = (budgetId: string) => ({
      budget_id: budgetId,
      provider: 'metered',
      held_amount: 5n,
      unknown_amount: 1n,
    });
    const heldByProvider = [held('budget-0'), held('late-1'), held('late-2')];
    const lines = await linesOf({ budgets, heldByProvider });
    const limits = lines.filter((line) => line.startsWith('holdfast_budget_limit_credits{'));
    expect(limits).toHaveLength(101);
    expect(lines).toContain('holdfast_budget_limit_credits{budget="budget-99"} 10');
    expect(lines).toContain('holdfast_budget_limit_credits{budget="other"} 7');
    expect(lines).toContain('holdfast_captured_credits_total{budget="other"} 4');
    expect(lines).toContain('holdfast_held_credits{budget="other",provider="metered"} 10');
    expect(lines).toContain('holdfast_unknown_held_credits{budget="other",provider="metered"} 2');
    expect(lines).toContain('holdfast_held_credits{budget="budget-0",provider="metered"} 5');
    expect(lines.join('\n')).not.toContain('late-');
  });

  test('dollars and credits are families of their own, in whole units', async () => {
    const lines = await linesOf({
      budgets: [budget('dollars', 'usd', 12_500_000_000n), budget('credits', 'credit', 12n)],
    });
    expect(lines).toContain('holdfast_budget_limit_usd{budget="dollars"} 12.5');
    expect(lines).toContain('holdfast_budget_limit_credits{budget="credits"} 12');
    expect(lines).not.toContain('holdfast_budget_limit_usd{budget="credits"} 12');
  });
});
