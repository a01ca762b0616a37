// Readiness
// ---------
// Whether this worker can serve: each of its queues is polled, Temporal answers, and the ledger
// answers and is the one that was set up. Each check is named, with its reason in plain words.

import { HoldfastError } from '../domain/failure.js';
import type { LedgerWatch } from '../ledger/watch.js';
import type { QueueState, RunningWorker } from './worker.js';

const CHECK_LIMIT_MS = 2_000;

export interface Check {
  readonly check: string;
  /** `unknown`: it could not be asked, because of another one that failed. */
  readonly state: 'ok' | 'failed' | 'unknown';
  readonly reason?: string;
}

export interface Readiness {
  readonly status: 'ready' | 'not_ready';
  readonly checks: readonly Check[];
}

interface ReadinessOptions {
  readonly watch: Pick<LedgerWatch, 'identity'>;
  /** Undefined while the worker starts. */
  readonly worker: Pick<RunningWorker, 'queues' | 'askServer'> | undefined;
}

export async function readReadiness({ watch, worker }: ReadinessOptions): Promise<Readiness> {
  const [temporal, ledger] = await Promise.all([checkTemporal(worker), checkLedger(watch)]);
  const checks = [...temporal, ...ledger];
  const isReady = checks.every((check) => check.state === 'ok');
  return { status: isReady ? 'ready' : 'not_ready', checks };
}

async function checkTemporal(worker: ReadinessOptions['worker']): Promise<Check[]> {
  if (worker === undefined) return [failed('temporal', 'the worker is still starting')];
  const server = await outcomeOf(worker.askServer(CHECK_LIMIT_MS));
  return [
    server.isReached
      ? ok('temporal')
      : failed('temporal', `the Temporal server could not be asked: ${server.reason}`),
    ...worker.queues().map(checkQueue),
  ];
}

function checkQueue({ taskQueue, state }: QueueState): Check {
  const check = `queue ${taskQueue}`;
  return state === 'RUNNING'
    ? ok(check)
    : failed(check, `the queue is not polled: its worker is ${state.toLowerCase()}`);
}

async function checkLedger(watch: ReadinessOptions['watch']): Promise<Check[]> {
  const identity = await outcomeOf(watch.identity());
  if (!identity.isReached) {
    return [
      failed('ledger', `the ledger could not be asked: ${identity.reason}`),
      { check: 'ledger_trusted', state: 'unknown', reason: 'the ledger did not answer' },
    ];
  }
  return [
    ok('ledger'),
    identity.value?.is_trusted === true
      ? ok('ledger_trusted')
      : failed('ledger_trusted', 'this database is a copy: it was set up on another server'),
  ];
}

type Outcome<T> =
  | { readonly isReached: true; readonly value: T }
  | { readonly isReached: false; readonly reason: string };

/** Bounded here too: a check that never returns would make the whole answer silent. */
async function outcomeOf<T>(asked: Promise<T>): Promise<Outcome<T>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Outcome<T>>((resolve) => {
    timer = setTimeout(() => {
      resolve({ isReached: false, reason: `no answer within ${CHECK_LIMIT_MS} ms` });
    }, CHECK_LIMIT_MS);
  });
  const answered = asked.then(
    (value): Outcome<T> => ({ isReached: true, value }),
    (error: unknown): Outcome<T> => ({ isReached: false, reason: reasonOf(error) }),
  );
  try {
    return await Promise.race([answered, late]);
  } finally {
    clearTimeout(timer);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof HoldfastError) return error.message;
  return error instanceof Error ? error.message : String(error);
}

function ok(check: string): Check {
  return { check, state: 'ok' };
}

function failed(check: string, reason: string): Check {
  return { check, state: 'failed', reason };
}
