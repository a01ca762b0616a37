// Metric families
// ---------------
// Every figure that a worker exports, by name; docs/metrics.md explains them, and a test compares.
//
//   M1. Money is exported in whole dollars and whole credits, each a family of its own, so that no sum
//       mixes units. It is a float here and nowhere else.
//   M2. Labels are budgets (up to a number), providers of the configuration, and words of closed lists.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Unit } from '../domain/money.js';

type OfUnit<T> = Readonly<Record<Unit, T>>;
const SUFFIXES: OfUnit<string> = { usd: 'usd', credit: 'credits' };

const PER_BUDGET = ['budget'] as const;
const PER_HOLDER = ['budget', 'provider'] as const;
/** In seconds: a hold takes milliseconds, and is given up after five seconds. */
const ADMISSION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export type MetricFamilies = ReturnType<typeof createMetricFamilies>;

export function createMetricFamilies(registry: Registry) {
  return { ...ledgerFamilies(registry), ...driftFamilies(registry), ...ownFamilies(registry) };
}

/** Read from the ledger at each scrape, and the same at every worker. */
function ledgerFamilies(registry: Registry) {
  const registers = [registry];
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Gauge({ name, help, labelNames, registers });
  const ofUnits = <T>(create: (suffix: string) => T): OfUnit<T> => ({
    usd: create(SUFFIXES.usd),
    credit: create(SUFFIXES.credit),
  });
  const money = <L extends string>(stem: string, help: string, labelNames: readonly L[]) =>
    ofUnits((suffix) => gauge(`holdfast_${stem}_${suffix}`, help, labelNames));
  const moneyTotal = (stem: string, help: string) =>
    ofUnits(
      (suffix) =>
        new Counter({
          name: `holdfast_${stem}_${suffix}_total`,
          help,
          labelNames: PER_BUDGET,
          registers,
        }),
    );
  return {
    ledgerUp: gauge('holdfast_ledger_up', '1 when the ledger answered this scrape, else 0', []),
    operationsOpen: gauge('holdfast_operations_open', 'Operations that are not closed', [
      'state',
      'provider',
    ]),
    openCancels: gauge('holdfast_open_cancels', 'Open operations with a wish to stop', ['cancel']),
    oldestUnknownAge: gauge(
      'holdfast_oldest_unknown_age_seconds',
      'How long the oldest unknown attempt has been unknown',
      ['provider'],
    ),
    held: money('held', 'Held by open attempts, unknown ones included', PER_HOLDER),
    unknownHeld: money('unknown_held', 'Held by unknown attempts', PER_HOLDER),
    limit: money('budget_limit', 'The limit of a budget', PER_BUDGET),
    available: money('budget_available', 'Limit less captured less held', PER_BUDGET),
    captured: moneyTotal('captured', 'Charged, by the ledger'),
    overrun: moneyTotal('overrun', 'Charged above the hold'),
  };
}

/** The last conservation check. */
function driftFamilies(registry: Registry) {
  const registers = [registry];
  return {
    ledgerDrift: new Gauge({
      name: 'holdfast_ledger_drift',
      help: 'Rows that ledger.check() found in its last run; 0 when the books are whole',
      labelNames: ['check'] as const,
      registers,
    }),
    ledgerDriftCheckedAt: new Gauge({
      name: 'holdfast_ledger_drift_checked_at_seconds',
      help: 'When ledger.check() last ended, in seconds since 1970',
      registers,
    }),
  };
}

/** Counted by this process since it started. */
function ownFamilies(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name, help, labelNames, registers });
  return {
    lookups: counter('holdfast_provider_lookups_total', 'Questions to providers', [
      'provider',
      'kind',
      'answer',
    ]),
    admissions: counter('holdfast_admissions_total', 'Admissions by their end', [
      'decision',
      'reason',
    ]),
    admissionDuration: new Histogram({
      name: 'holdfast_admission_duration_seconds',
      help: 'How long an admission took',
      buckets: ADMISSION_BUCKETS,
      registers,
    }),
    alerts: counter('holdfast_alerts_total', 'Alerts raised to operators', ['kind']),
    supervisorsRestarted: counter(
      'holdfast_supervisors_restarted_total',
      'Supervisors started again for open operations that had none',
      [],
    ),
  };
}
