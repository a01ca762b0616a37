// Budget labels
// -------------
// A metrics store keeps one series a label value for as long as it keeps anything, so budgets are
// labels only up to a number; the rest is summed under one name.

const BUDGET_LABELS_MAX = 100;
const OTHER_BUDGETS = 'other';

/**
 * The label of each budget. The oldest keep their own names, so that no series changes its meaning
 * when a budget is added; one that happens to be called `other` is among the others then.
 */
export function createBudgetLabels(
  oldestFirst: readonly string[],
  countMax = BUDGET_LABELS_MAX,
): (budgetId: string) => string {
  if (oldestFirst.length <= countMax) return (budgetId) => budgetId;
  const named = new Set(oldestFirst.filter((id) => id !== OTHER_BUDGETS).slice(0, countMax));
  return (budgetId) => (named.has(budgetId) ? budgetId : OTHER_BUDGETS);
}
