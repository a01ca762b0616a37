// Ledger gauges
// -------------
// Puts what the ledger said into the families. Null is never printed as 0: what is not known, or does
// not exist, has no line, and of an old scrape nothing stays.

import { SCALES, type Unit, UNITS } from '../domain/money.js';
import type { LedgerFigures } from '../ledger/watch.js';
import { createBudgetLabels } from './budget-labels.js';
import type { MetricFamilies } from './metric-families.js';

/** `undefined` when the ledger did not answer. */
export function showFigures(families: MetricFamilies, figures: LedgerFigures | undefined): void {
  clearFigures(families);
  families.ledgerUp.set(figures === undefined ? 0 : 1);
  if (figures === undefined) return;
  for (const { operation_count: count, ...labels } of figures.openByState) {
    families.operationsOpen.set(labels, count);
  }
  for (const { cancel, operation_count: count } of figures.openByCancel) {
    families.openCancels.set({ cancel }, count);
  }
  for (const { provider, oldest_age_s: age } of figures.unknownByProvider) {
    families.oldestUnknownAge.set({ provider }, age);
  }
  showMoney(families, figures);
}

/** Added and not set: several budgets may share the label of the others. */
function showMoney(families: MetricFamilies, figures: LedgerFigures): void {
  const { budgets } = figures;
  const labelOf = createBudgetLabels(budgets.map((budget) => budget.budget_id));
  const units = new Map(budgets.map((budget) => [budget.budget_id, budget.unit]));
  for (const { unit, ...totals } of budgets) {
    const budget = labelOf(totals.budget_id);
    families.captured[unit].inc({ budget }, toFloat(totals.captured_amount, unit));
    families.overrun[unit].inc({ budget }, toFloat(totals.overrun_amount, unit));
    if (totals.limit_amount === null || totals.available_amount === null) continue;
    families.limit[unit].inc({ budget }, toFloat(totals.limit_amount, unit));
    families.available[unit].inc({ budget }, toFloat(totals.available_amount, unit));
  }
  for (const held of figures.heldByProvider) {
    const unit = units.get(held.budget_id);
    // Created between the two readings: the next scrape has it.
    if (unit === undefined) continue;
    const labels = { budget: labelOf(held.budget_id), provider: held.provider };
    families.held[unit].inc(labels, toFloat(held.held_amount, unit));
    families.unknownHeld[unit].inc(labels, toFloat(held.unknown_amount, unit));
  }
}

function clearFigures(families: MetricFamilies): void {
  const { operationsOpen, openCancels, oldestUnknownAge } = families;
  const { held, unknownHeld, limit, available, captured, overrun } = families;
  for (const family of [operationsOpen, openCancels, oldestUnknownAge]) family.reset();
  for (const ofUnit of [held, unknownHeld, limit, available, captured, overrun]) {
    for (const unit of UNITS) ofUnit[unit].reset();
  }
}

function toFloat(amount: bigint, unit: Unit): number {
  return Number(amount) / 10 ** SCALES[unit];
}
