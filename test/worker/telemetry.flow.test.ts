// What a supervised call counts while it goes on, on real parts.

import pino from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../../worker/metrics.js';
import { openWatch, type LedgerWatch } from '../../ledger/watch.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;
let metrics: Metrics;
let watch: LedgerWatch | undefined;

beforeAll(async () => {
  metrics = createMetrics({
    watch: {
      figures: () => (watch as LedgerWatch).figures(),
      brokenRules: () => Promise.resolve([]),
    },
    logger: pino({ level: 'silent' }),
  });
  stage = await superviseFor({ label: 'counts', limit: 100n, telemetry: metrics.telemetry });
  watch = openWatch(stage.books.databaseUrl);
});
afterAll(async () => {
  await watch?.close();
  await stage.books.expectBooksWhole();
  await stage.close();
});

async function countOf(series: string): Promise<number> {
  const line = (await metrics.scrape()).split('\n').find((text) => text.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

test('admissions and lookups are counted by their end, once each', async () => {
  const receipts = 'holdfast_provider_lookups_total{provider="metered",kind="receipt"';
  await stage.provider.behave({
    times: 1,
    do: { answer: 'late', until_released: true, lookup: { finds: 'after_release' } },
  });
  const call = await stage.start('looked-up');
  await expect
    .poll(() => countOf(`${receipts},answer="not_found"}`), { timeout: 10_000 })
    .toBeGreaterThan(0);
  expect(await countOf(`${receipts},answer="charge"}`)).toBe(0);
  await stage.provider.releaseAll();
  expect(await call.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
  expect(await countOf(`${receipts},answer="charge"}`)).toBe(1);
  expect(await countOf('holdfast_admissions_total{decision="placed",reason=""}')).toBe(1);

  await (await stage.start('too-dear', { maxTokens: 90 })).result();
  const refused = 'holdfast_admissions_total{decision="refused",reason="exceeds_available"}';
  expect(await countOf(refused)).toBe(1);
  await expect((await stage.start('wrong', { route: 'no-such-route' })).result()).rejects.toThrow();
  expect(await countOf('holdfast_admissions_total{decision="invalid",reason=""}')).toBe(1);
  expect(await countOf('holdfast_admission_duration_seconds_count')).toBe(3);
});
