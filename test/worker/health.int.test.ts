// A real worker process and its three pages; the ways to the ledger and to Temporal go through gates.

import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createGate, type Gate } from '../../devstack/gate.js';
import { type SpawnedProcess, spawnProcess } from '../../devstack/processes.js';
import { amount } from '../../domain/money.js';
import { createBudget } from '../../ledger/administer.js';
import { requestCancel } from '../../ledger/fence.js';
import { BOOK_PROBLEMS, openWatch } from '../../ledger/watch.js';
import type { Readiness } from '../../worker/readiness.js';
import { createMetrics } from '../../worker/metrics.js';
import { createTestLedger, type TestLedger } from '../support/ledger-database.js';
import {
  ask,
  charge,
  fence,
  observe,
  openBudget,
  placed,
  priceRoute,
  silence,
} from '../support/ledger-facts.js';
import { runWorker } from '../support/run-cli.js';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));
const TASK_QUEUE = `health-${process.pid}`;

let books: TestLedger;
let gates: { readonly ledger: Gate; readonly temporal: Gate };
let environment: Record<string, string>;
let worker: SpawnedProcess;

beforeAll(async () => {
  books = await createTestLedger('health');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await openBudget(books.ledger, { budgetId: 'open-end', accountId: 'other' });
  await createBudget(books.ledger, {
    budgetId: 'dollars',
    unit: 'usd',
    limitAmount: amount(12_500_000_000n),
    scopes: [],
  });
  await priceRoute(books.ledger, 'fake-priced', 1n);
  const database = new URL(books.databaseUrl);
  const [host = '', port = ''] = inject('temporalAddress').split(':');
  gates = {
    ledger: await createGate({ target: { host: database.hostname, port: Number(database.port) } }),
    temporal: await createGate({ target: { host, port: Number(port) } }),
  };
  database.host = `127.0.0.1:${gates.ledger.port}`;
  environment = {
    DATABASE_URL: database.toString(),
    TEMPORAL_ADDRESS: `127.0.0.1:${gates.temporal.port}`,
    HOLDFAST_TASK_QUEUE: TASK_QUEUE,
    HOLDFAST_HEALTH_PORT: '0',
    LOG_LEVEL: 'warn',
    SHUTDOWN_GRACE_MS: '0',
  };
  worker = await spawnProcess({
    name: 'the worker',
    command: process.execPath,
    args: [join(DIST, 'worker/main.js')],
    cwd: mkdtempSync(join(tmpdir(), 'holdfast-health-')),
    env: { ...process.env, ...environment },
  });
});
afterAll(async () => {
  gates.ledger.pass();
  gates.temporal.pass();
  await worker.stop('SIGTERM', 15_000);
  await gates.ledger.close();
  await gates.temporal.close();
  await books.close();
});

const fetchPage = (path: string, options?: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${String(worker.ready['healthPort'])}${path}`, options);

async function readiness(): Promise<{ code: number; failed: string[] }> {
  const response = await fetchPage('/readyz');
  const { checks } = (await response.json()) as Readiness;
  const failed = checks.filter((check) => check.state !== 'ok');
  return {
    code: response.status,
    failed: failed.map(({ check, reason }) => `${check}: ${reason}`),
  };
}

/** Every series with its value, of one scrape. */
function seriesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}
const scrape = async () => seriesOf(await (await fetchPage('/metrics')).text());

const HELD = 'holdfast_held_credits{budget="team-a",provider="metered"}';
const UNKNOWN_HELD = 'holdfast_unknown_held_credits{budget="team-a",provider="metered"}';
const AVAILABLE = 'holdfast_budget_available_credits{budget="team-a"}';
const CAPTURED = 'holdfast_captured_credits_total{budget="team-a"}';
const OVERRUN = 'holdfast_overrun_credits_total{budget="team-a"}';
const UNKNOWN_AGE = 'holdfast_oldest_unknown_age_seconds{provider="metered"}';
const open = (state: string) => `holdfast_operations_open{state="${state}",provider="metered"}`;

describe('the pages', () => {
  test('a worker is alive and ready, and names each of its queues', async () => {
    const alive = await fetchPage('/healthz');
    expect([alive.status, await alive.json()]).toEqual([200, { status: 'alive' }]);
    const ready = await fetchPage('/readyz');
    expect(ready.status).toBe(200);
    const { status, checks } = (await ready.json()) as Readiness;
    expect(status).toBe('ready');
    const names = checks.map((check) => check.check);
    expect(names.filter((name) => name.startsWith(`queue ${TASK_QUEUE}`))).toHaveLength(3);
    expect(names).toEqual(expect.arrayContaining(['temporal', 'ledger', 'ledger_trusted']));
  });

  test('any other path is 404 and any other method 405, each with a sentence', async () => {
    const lost = await fetchPage('/metrics/');
    expect([lost.status, await lost.text()]).toEqual([
      404,
      'Here are /healthz, /readyz and /metrics, and nothing else.\n',
    ]);
    const written = await fetchPage('/readyz', { method: 'POST', body: 'x'.repeat(1_000_000) });
    expect([written.status, await written.text()]).toEqual([
      405,
      '/readyz can be read with GET, and nothing else.\n',
    ]);
    expect(written.headers.get('allow')).toBe('GET');
  });

  test('a malformed request is answered with 400 and harms no other', async () => {
    for (const nonsense of [
      '\u0000\u0001\u0002\r\n\r\n',
      'GET /healthz HTTP/1.1\r\nno colon\r\n\r\n',
      'GET // HTTP/9\r\n\r\n',
    ]) {
      const socket = connect(Number(worker.ready['healthPort']), '127.0.0.1');
      let said = '';
      socket.setEncoding('utf8').on('data', (text: string) => (said += text));
      socket.write(nonsense);
      await once(socket, 'close');
      expect(said).toMatch(/^HTTP\/1\.1 400 /);
    }
    expect((await fetchPage('/healthz')).status).toBe(200);
    expect((await fetchPage('/healthz?a=%zz')).status).toBe(200);
    expect((await fetchPage('//x@y:z/%')).status).toBe(404);
  });

  test('a port that is taken is told at the start, with the way out', async () => {
    const taken = String(worker.ready['healthPort']);
    const second = await runWorker({ ...environment, HOLDFAST_HEALTH_PORT: taken });
    expect(second.code).toBe(3);
    expect(second.stderr).toContain(`cannot serve health on 127.0.0.1:${taken}: listen EADDRINUSE`);
    expect(second.stderr).toContain('Give another HOLDFAST_HEALTH_PORT');
  });
});

describe('the figures', () => {
  test('the families are those of docs/metrics.md', async () => {
    const text = await (await fetchPage('/metrics')).text();
    const exported = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, ...one]) =>
      one.join(' '),
    );
    const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `(holdfast_\w+)` \| (\w+) \|/gm)];
    expect(exported.sort()).toEqual(rows.map(([, ...one]) => one.join(' ')).sort());
  });

  test('before anything is held there is a limit and no held line; no limit is no line', async () => {
    const series = await scrape();
    expect(series.get('holdfast_ledger_up')).toBe(1);
    expect(series.get('holdfast_budget_limit_usd{budget="dollars"}')).toBe(12.5);
    expect(series.get('holdfast_budget_limit_credits{budget="team-a"}')).toBe(100);
    expect(series.get(CAPTURED)).toBe(0);
    expect(series.get('holdfast_captured_credits_total{budget="open-end"}')).toBe(0);
    expect(series.has('holdfast_budget_limit_credits{budget="open-end"}')).toBe(false);
    expect(series.has('holdfast_budget_available_credits{budget="open-end"}')).toBe(false);
    for (const name of [HELD, UNKNOWN_HELD, UNKNOWN_AGE]) expect(series.has(name)).toBe(false);
  });

  test('P6: they follow a hold from placed to unknown to settled above it', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    let series = await scrape();
    const seen = (...names: string[]) => names.map((name) => series.get(name));
    expect(seen(HELD, UNKNOWN_HELD, AVAILABLE, open('held'))).toEqual([40, 0, 60, 1]);
    expect(series.has(UNKNOWN_AGE)).toBe(false);

    await fence(books.ledger, snapshot);
    series = await scrape();
    expect(seen(HELD, UNKNOWN_HELD, open('dispatched'), open('held'))).toEqual([
      40,
      0,
      1,
      undefined,
    ]);

    await observe(books.ledger, snapshot, silence);
    await requestCancel(books.ledger, {
      operationKey: snapshot.operationKey,
      by: 'somebody',
      isSupported: false,
    });
    series = await scrape();
    expect(seen(HELD, UNKNOWN_HELD, AVAILABLE, open('unknown'))).toEqual([40, 40, 60, 1]);
    expect(series.get(UNKNOWN_AGE)).toBeGreaterThan(0);
    expect(series.get(UNKNOWN_AGE)).toBeLessThan(60);
    expect(series.get('holdfast_open_cancels{cancel="unsupported"}')).toBe(1);

    await observe(books.ledger, snapshot, charge('45', { output_tokens: 45 }));
    series = await scrape();
    expect(seen(CAPTURED, OVERRUN, AVAILABLE)).toEqual([45, 5, 55]);
    const left = [...series.keys()].filter((name) =>
      /^holdfast_(held|unknown_held|operations_open|open_cancels|oldest)/.test(name),
    );
    expect(left).toEqual([]);
    await books.expectBooksWhole();
  });

  test('P6: a sender that is overdue counts as unknown although nobody wrote it', async () => {
    const snapshot = await placed(books.ledger, ask('op-2', 30));
    await fence(books.ledger, snapshot);
    expect((await scrape()).get(UNKNOWN_HELD)).toBe(0);
    await books.admin.query("select ledger.move_clock('1 hour')");
    const series = await scrape();
    expect(series.get(UNKNOWN_HELD)).toBe(30);
    expect(series.get(open('unknown'))).toBe(1);
    expect(series.get(UNKNOWN_AGE)).toBeGreaterThan(3_000);
    await books.expectBooksWhole();
  });

  test('the books are checked in the background, with 0 for each rule that holds', async () => {
    const drift = (name: string) => `holdfast_ledger_drift{check="${name}"}`;
    const checkedAt = 'holdfast_ledger_drift_checked_at_seconds';
    await expect.poll(async () => (await scrape()).has(checkedAt), { timeout: 10_000 }).toBe(true);
    const series = await scrape();
    expect(series.get(checkedAt)).toBeGreaterThan(Date.now() / 1_000 - 120);
    expect(BOOK_PROBLEMS.map((name) => series.get(drift(name)))).toEqual(
      BOOK_PROBLEMS.map(() => 0),
    );
  });
});

describe('a broken ledger', () => {
  test('every rule of ledger.check() is known by its sentence', async () => {
    const { rows } = await books.admin.query<{ source: string }>(
      "select prosrc as source from pg_proc where proname = 'check' and pronamespace = 'ledger'::regnamespace",
    );
    const sentences = rows[0]?.source.matchAll(/^\s*select '([^']+)',/gm) ?? [];
    expect([...sentences].map(([, sentence]) => sentence)).toEqual([...BOOK_PROBLEMS]);
  });

  test('a tampered counter is drift, by the rules that it breaks', async () => {
    const tamper = (delta: number) =>
      books.admin.query(
        `update ledger.budget_period set captured_amount = captured_amount + ${delta} where budget_id = 'team-a'`,
      );
    await tamper(7);
    const watch = openWatch(books.databaseUrl);
    try {
      const { scrape: scrapeHere } = createMetrics({ watch, logger: pino({ level: 'silent' }) });
      const rule = 'the captured amount is not the sum of the captures';
      await expect
        .poll(
          async () => seriesOf(await scrapeHere()).get(`holdfast_ledger_drift{check="${rule}"}`),
          { timeout: 10_000 },
        )
        .toBe(1);
    } finally {
      await watch.close();
      await tamper(-7);
    }
  });

  test('cut off, it is named by readiness and absent from the figures, until it is back', async () => {
    gates.ledger.cut();
    expect(await readiness()).toEqual({
      code: 503,
      failed: [
        'ledger: the ledger could not be asked: LEDGER_UNAVAILABLE: no answer within 2000 ms',
        'ledger_trusted: the ledger did not answer',
      ],
    });
    expect((await fetchPage('/healthz')).status).toBe(200);
    const series = await scrape();
    expect(series.get('holdfast_ledger_up')).toBe(0);
    expect(series.get('holdfast_supervisors_restarted_total')).toBe(0);
    const money = [...series.keys()].filter((name) => /team-a|dollars|metered/.test(name));
    expect(money).toEqual([]);
    gates.ledger.pass();
    await expect.poll(readiness, { timeout: 10_000 }).toEqual({ code: 200, failed: [] });
    expect((await scrape()).get(HELD)).toBe(30);
  });

  test('silent instead of cut, it is given up within the limit', async () => {
    gates.ledger.hold('both');
    const startedAt = performance.now();
    const [ready, series] = await Promise.all([readiness(), scrape()]);
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    expect(ready.code).toBe(503);
    expect(series.get('holdfast_ledger_up')).toBe(0);
    gates.ledger.pass();
    await expect.poll(readiness, { timeout: 10_000 }).toEqual({ code: 200, failed: [] });
  });

  test('a copy on another server answers, and is not trusted', async () => {
    const identify = (delta: number) =>
      books.admin.query(
        `update ledger.identity set system_identifier = system_identifier + ${delta}`,
      );
    await identify(1);
    const { code, failed } = await readiness();
    await identify(-1);
    expect([code, failed]).toEqual([
      503,
      ['ledger_trusted: this database is a copy: it was set up on another server'],
    ]);
  });
});

test('a Temporal server that is out of reach is named by readiness', async () => {
  gates.temporal.cut();
  const { code, failed } = await readiness();
  expect(code).toBe(503);
  expect(failed[0]).toMatch(/^temporal: the Temporal server could not be asked: /);
  gates.temporal.pass();
  await expect.poll(readiness, { timeout: 20_000 }).toEqual({ code: 200, failed: [] });
});
