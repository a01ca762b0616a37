// What it costs to wait: supervisors of jobs whose provider is silent, on one worker. Memory of the
// worker and of the Temporal server by their number, the time of a list, and the events that a week of
// silence adds to a history.

import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Devstack, startDevstack } from '../devstack/devstack.js';
import { operationWorkflowId } from '../domain/identity.js';
import { segmentMs } from '../domain/lookup-schedule.js';
import { amount } from '../domain/money.js';
import { DEFAULT_TIMINGS } from '../domain/route.js';
import { createAccount, createBudget, setPrice } from '../ledger/administer.js';
import { listOperations } from '../ledger/read.js';
import { setUpDatabase } from '../scenario-runner/play/ledger-databases.js';
import { openStage, type Stage } from '../scenario-runner/play/stage.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../workflows/search-attributes.js';
import { printRow } from './measure.js';

const ACCOUNT = 'account';
const STARTERS = 16;
/** Operations whose histories are watched over some segments of asking. */
const WATCHED_COUNT = 5;
const WATCH_MS = 95_000;
const WEEK_MS = 7 * 24 * 3_600_000;
const DIST_DIR = dirname(dirname(fileURLToPath(import.meta.url)));

export async function benchWaiting(flags: ReadonlyMap<string, string>): Promise<void> {
  const count = Number(flags.get('count') ?? '2000');
  if (!Number.isSafeInteger(count) || count < WATCHED_COUNT) {
    throw new RangeError(`--count is "${flags.get('count') ?? ''}"; give ${WATCHED_COUNT} or more`);
  }
  const workDir = mkdtempSync(join(tmpdir(), 'holdfast-waiting-'));
  chmodSync(workDir, 0o755);
  const devstack = await startDevstack({
    checkoutDir: dirname(DIST_DIR),
    stateDir: workDir,
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    onProgress: tell,
  });
  try {
    const stage = await openBenchStage(devstack, workDir);
    try {
      await run(stage, devstack, count);
    } finally {
      await stage.close({ isHasty: true });
    }
  } finally {
    await devstack.stop();
    rmSync(workDir, { recursive: true, force: true });
  }
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function openBenchStage(devstack: Devstack, workDir: string): Promise<Stage> {
  const stage = await openStage({
    distDir: DIST_DIR,
    workDir,
    database: await setUpDatabase({
      adminUrl: devstack.postgres.adminUrl,
      name: 'waiting',
      isTest: true,
    }),
    temporalAddress: devstack.temporal.address,
    namespace: devstack.temporal.namespace,
    simulatorPrices: [],
    configText,
  });
  await createAccount(stage.ledger, { accountId: ACCOUNT });
  await createBudget(stage.ledger, {
    budgetId: 'budget',
    unit: 'credit',
    limitAmount: amount(10n ** 12n),
    scopes: [{ kind: 'account', value: ACCOUNT }],
  });
  for (const route of ['waiting', 'watched']) {
    await setPrice(stage.ledger, {
      route,
      unit: 'credit',
      rates: [
        { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'ticks', rateAmount: amount(1n), perCount: 1n },
      ],
    });
  }
  // Accepted, and silent from then on.
  await stage.provider.behave({ do: { lookup: { status: 503 } } });
  await stage.startWorker();
  return stage;
}

function configText(providerUrl: string): string {
  const route = { provider: 'jobs', model: 'fake-job', bound_max: { ticks: 1_000 } };
  return JSON.stringify({
    allow_short_timings: true,
    providers: {
      jobs: { kind: 'metered-jobs', base_url: providerUrl, api_key_env: 'SIMULATOR_API_KEY' },
    },
    routes: {
      waiting: route,
      watched: { ...route, timings: { question_first_ms: 200, question_max_ms: 1_000 } },
    },
  });
}

async function run(stage: Stage, devstack: Devstack, count: number): Promise<void> {
  let started = 0;
  for (const share of [0.25, 0.5, 1]) {
    const until = Math.floor(count * share);
    tell(`starting up to ${until} jobs …`);
    await startJobs(stage, { route: 'waiting', from: started, until });
    started = until;
    await untilUnknown(stage, started);
    printRow({
      waiting: started,
      workerMegabytes: residentMegabytes(stage.workerPids()[0]),
      temporalMegabytes: residentMegabytes(devstack.temporal.pid ?? undefined),
      listMs: await timeOfList(stage),
      opsListMs: await timeOfCommand(stage),
    });
  }
  await watchHistories(stage, started);
}

async function startJobs(
  stage: Stage,
  jobs: { readonly route: string; readonly from: number; readonly until: number },
): Promise<void> {
  let next = jobs.from;
  await Promise.all(
    Array.from({ length: STARTERS }, async () => {
      while (next < jobs.until) {
        const operationId = `${jobs.route}-${next}`;
        next += 1;
        await stage.temporal.workflow.start('remoteJob', {
          taskQueue: stage.taskQueue,
          workflowId: operationWorkflowId('job', ACCOUNT, operationId),
          args: [{ accountId: ACCOUNT, route: jobs.route, bound: { ticks: 20 }, request: {} }],
        });
        if (next % 250 === 0) tell(`${next} started …`);
      }
    }),
  );
}

async function untilUnknown(stage: Stage, count: number): Promise<void> {
  for (;;) {
    const rows = await listOperations(stage.ledger, { state: 'unknown', countMax: 100_000 });
    if (rows.length >= count) return;
    tell(`${rows.length} of ${count} are unknown …`);
    await pause(2_000);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

function residentMegabytes(pid: number | undefined): number {
  const [, kilobytes] =
    /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid ?? 0}/status`, 'utf8')) ?? [];
  return Math.round(Number(kilobytes) / 1024);
}

async function timeOfList(stage: Stage): Promise<number> {
  const startedAt = performance.now();
  await listOperations(stage.ledger, { state: 'unknown', olderThanMs: 0, countMax: 50 });
  return Math.round(performance.now() - startedAt);
}

/** The whole command, as somebody types it; the best of three. */
async function timeOfCommand(stage: Stage): Promise<number> {
  const took: number[] = [];
  for (let no = 0; no < 3; no += 1) {
    const startedAt = performance.now();
    await promisify(execFile)(
      process.execPath,
      [join(DIST_DIR, 'cli', 'main.js'), 'ops', 'list', '--state', 'unknown', '--older-than', '1s'],
      { env: { ...process.env, DATABASE_URL: stage.databaseUrl } },
    );
    took.push(performance.now() - startedAt);
  }
  return Math.round(Math.min(...took));
}

/** Events of one segment are measured; how many segments a week has is asked of the rule itself. */
async function watchHistories(stage: Stage, started: number): Promise<void> {
  await startJobs(stage, { route: 'watched', from: 0, until: WATCHED_COUNT });
  await untilUnknown(stage, started + WATCHED_COUNT);
  const before = await historyLengths(stage);
  tell(`watching ${WATCHED_COUNT} histories for ${WATCH_MS / 1_000} s …`);
  await pause(WATCH_MS);
  const after = await historyLengths(stage);
  const segmentCount = Math.floor(WATCH_MS / 30_000);
  const perSegment = Math.max(
    ...after.map((length, no) => (length - (before[no] ?? 0)) / segmentCount),
  );
  const segmentsOfWeek = countSegments(WEEK_MS);
  printRow({
    watched: WATCHED_COUNT,
    eventsUntilUnknown: Math.max(...before),
    eventsASegment: Math.round(perSegment * 10) / 10,
    segmentsAWeek: segmentsOfWeek,
    eventsAWeek: Math.round(Math.max(...before) + perSegment * segmentsOfWeek),
  });
}

async function historyLengths(stage: Stage): Promise<number[]> {
  return Promise.all(
    Array.from({ length: WATCHED_COUNT }, async (_, no) => {
      const workflowId = operationWorkflowId('job', ACCOUNT, `watched-${no}`);
      const { historyLength } = await stage.temporal.workflow.getHandle(workflowId).describe();
      return historyLength;
    }),
  );
}

function countSegments(untilMs: number): number {
  const schedule = {
    firstMs: DEFAULT_TIMINGS.questionFirstMs,
    maxMs: DEFAULT_TIMINGS.questionMaxMs,
  };
  let count = 0;
  for (let waitedMs = 0; waitedMs < untilMs; waitedMs += segmentMs(schedule, waitedMs)) count += 1;
  return count;
}
