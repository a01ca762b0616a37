// Metrics
// -------
// What a scrape answers. Figures about money are read from the ledger when they are asked for, and are
// absent when it does not answer in time; the conservation check reads everything, so it runs in the
// background, at most once a minute, while somebody scrapes; the rest this process counts itself.

import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { Telemetry } from '../activities/telemetry.js';
import { HoldfastError } from '../domain/failure.js';
import {
  BOOK_PROBLEMS,
  type BrokenRule,
  type LedgerFigures,
  type LedgerWatch,
} from '../ledger/watch.js';
import { showFigures } from './ledger-gauges.js';
import { createMetricFamilies, type MetricFamilies } from './metric-families.js';

const CHECK_PAUSE_MS = 60_000;
/** The longer a check took, the longer the pause: it reads everything there is. */
const PAUSE_TO_CHECK = 20;

export interface Metrics {
  readonly telemetry: Telemetry;
  readonly contentType: string;
  readonly scrape: () => Promise<string>;
}

interface MetricsOptions {
  readonly watch: Pick<LedgerWatch, 'figures' | 'brokenRules'>;
  readonly logger: Logger;
}

export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const families = createMetricFamilies(registry);
  // Without labels it starts at 0, which would say 1970 before the first check has ended.
  families.ledgerDriftCheckedAt.remove();
  const checkSometimes = createDriftCheck(families, options);
  let running: Promise<string> | undefined;
  const scrapeOnce = async (): Promise<string> => {
    checkSometimes();
    showFigures(families, await figuresOrNone(options));
    return registry.metrics();
  };
  return {
    telemetry: telemetryInto(families),
    contentType: registry.contentType,
    // Those who ask at once share one reading: the families are filled by one at a time.
    scrape() {
      running ??= scrapeOnce().finally(() => {
        running = undefined;
      });
      return running;
    },
  };
}

async function figuresOrNone({
  watch,
  logger,
}: MetricsOptions): Promise<LedgerFigures | undefined> {
  try {
    return await watch.figures();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    logger.warn({ code: error.code, detail: error.message }, 'scrape without the ledger');
    return undefined;
  }
}

/** The last result stays, with its time, until there is a new one. */
function createDriftCheck(families: MetricFamilies, { watch, logger }: MetricsOptions): () => void {
  let nextAt = 0;
  const check = async (): Promise<void> => {
    const startedAt = performance.now();
    try {
      const broken = await watch.brokenRules();
      showBrokenRules(families, broken);
      if (broken.length > 0) logger.error({ broken }, 'the books are broken');
    } catch (error) {
      const code = error instanceof HoldfastError ? error.code : String(error);
      logger.warn({ code }, 'the books could not be checked');
    } finally {
      const endedAt = performance.now();
      nextAt = endedAt + Math.max(CHECK_PAUSE_MS, (endedAt - startedAt) * PAUSE_TO_CHECK);
    }
  };
  return () => {
    if (performance.now() < nextAt) return;
    nextAt = Number.POSITIVE_INFINITY;
    void check();
  };
}

function showBrokenRules(families: MetricFamilies, broken: readonly BrokenRule[]): void {
  families.ledgerDrift.reset();
  for (const rule of BOOK_PROBLEMS) families.ledgerDrift.set({ check: rule }, 0);
  for (const { problem, row_count: count } of broken) {
    families.ledgerDrift.set({ check: problem }, count);
  }
  families.ledgerDriftCheckedAt.set(Date.now() / 1_000);
}

function telemetryInto(families: MetricFamilies): Telemetry {
  return {
    lookedUp: ({ provider, kind, answer }) => {
      families.lookups.inc({ provider, kind, answer });
    },
    admissionEnded: ({ decision, reason, durationMs }) => {
      families.admissions.inc({ decision, reason });
      families.admissionDuration.observe(durationMs / 1_000);
    },
    alerted: (kind) => {
      families.alerts.inc({ kind });
    },
    supervisorRestarted: () => {
      families.supervisorsRestarted.inc();
    },
  };
}
