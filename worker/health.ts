// Health
// ------
// What one worker process shows of itself, put together: nothing at all where no port is configured.

import type { Logger } from 'pino';
import { noTelemetry, type Telemetry } from '../activities/telemetry.js';
import { openWatch } from '../ledger/watch.js';
import { serveHealth } from './health-server.js';
import { createMetrics } from './metrics.js';
import { readReadiness } from './readiness.js';
import type { RunningWorker } from './worker.js';

export interface Health {
  readonly telemetry: Telemetry;
  /** Undefined when it is not served. */
  readonly port: number | undefined;
  /** Until then it is alive and not ready. */
  readonly workerStarted: (worker: RunningWorker) => void;
  readonly close: () => Promise<void>;
}

interface HealthOptions {
  readonly databaseUrl: string;
  readonly at: { readonly host: string; readonly port: number } | undefined;
  readonly logger: Logger;
}

const NOT_SERVED: Health = {
  telemetry: noTelemetry,
  port: undefined,
  workerStarted: () => undefined,
  close: () => Promise.resolve(),
};

export async function openHealth({ databaseUrl, at, logger }: HealthOptions): Promise<Health> {
  if (at === undefined) return NOT_SERVED;
  const watch = openWatch(databaseUrl);
  const metrics = createMetrics({ watch, logger });
  let worker: RunningWorker | undefined;
  const readiness = () => readReadiness({ watch, worker });
  const server = await serveHealth({ ...at, readiness, metrics, logger });
  return {
    telemetry: metrics.telemetry,
    port: server.port,
    workerStarted(started) {
      worker = started;
    },
    async close() {
      await server.close();
      await watch.close();
    },
  };
}
