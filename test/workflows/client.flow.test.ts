import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { Client, Connection } from '@temporalio/client';
import { createHoldfastClient } from '../../client/holdfast-client.js';
import type { OperationHandle } from '../../client/operation-handle.js';
import { readBudget } from '../../ledger/read.js';
import { runCli } from '../support/run-cli.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;
let other: Client;

beforeAll(async () => {
  stage = await superviseFor({ label: 'client', limit: 10_000n });
  other = new Client({
    connection: await Connection.connect({ address: inject('temporalAddress') }),
  });
});
afterEach(async () => {
  await stage.provider.forgetRules();
  await stage.books.expectBooksWhole();
});
afterAll(async () => {
  await other.connection.close();
  await stage.close();
});

function call(client: Client, operationId: string, maxTokens = 40): OperationHandle {
  return createHoldfastClient({ client }).call({
    accountId: stage.accountId,
    operationId,
    route: 'fake-priced',
    maxTokens,
    request: { messages: [{ role: 'user', content: 'Count to forty.' }] },
  });
}

describe('the client', () => {
  test('P4: twenty admissions of one operation through two clients are one hold and one send', async () => {
    const handles = [stage.temporal, other].map((client) => call(client, 'raced'));
    const verdicts = await Promise.all(
      Array.from({ length: 20 }, (_, no) => (handles[no % 2] as OperationHandle).admit()),
    );
    for (const verdict of verdicts) expect(['admitted', 'closed']).toContain(verdict.status);
    const results = await Promise.all(handles.map((handle) => handle.result()));
    expect(results[0]).toMatchObject({ outcome: 'settled', chargedAmount: '40', attemptCount: 1 });
    expect(results[1]).toEqual(results[0]);
    const key = results[0]?.outcome === 'settled' ? results[0].operationKey : null;
    expect(await stage.provider.receivedUnder(`${key ?? '-'}-`)).toBe(1);
  });

  test('two clients that ask for one id with different terms: one is admitted, the other told so', async () => {
    const [one, two] = [call(stage.temporal, 'torn', 40), call(other, 'torn', 41)];
    const verdicts = await Promise.all([one.admit(), two.admit()]);
    expect(verdicts.map((verdict) => verdict.status).sort()).toEqual(['admitted', 'refused']);
    const refused = verdicts.find((verdict) => verdict.status === 'refused');
    expect(refused?.refusal.reason).toBe('key_reused');
    await one.result();
    const late = await call(other, 'torn', 41).admit();
    const early = await call(other, 'torn', 40).admit();
    expect([late.status, early.status].sort()).toEqual(['closed', 'refused']);
  });

  test('a caller that waits less than the answer takes hears unknown, and cancels nothing', async () => {
    await stage.provider.behave({ times: 1, do: { answer: 'late', delay_ms: 600 } });
    const handle = call(stage.temporal, 'patience');
    await handle.admit();
    expect(await handle.awaitAnswer(50)).toMatchObject({ status: 'unknown', answerRef: null });
    expect(await handle.awaitAnswer(20_000)).toMatchObject({ status: 'answered' });
    expect(await handle.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
  });

  test('an admission at a deadline that has passed is unknown, and the same handle hears later', async () => {
    const handle = call(stage.temporal, 'hurried');
    expect(await handle.admit({ timeoutMs: 1 })).toEqual({ status: 'unknown' });
    expect(['admitted', 'closed']).toContain((await handle.admit()).status);
    expect(await handle.result()).toMatchObject({ outcome: 'settled', attemptCount: 1 });
    expect((await readBudget(stage.books.ledger, 'team-a'))?.held_amount).toBe(0n);
  });
});

describe('a server that answers chat completions and nothing else', () => {
  test.each([
    ['drops the socket after accepting', { drop: 'after_accepting' }],
    ['fails after accepting', { fail_after_accepting: 500 }],
    ['states no usage', { usage: 'missing' }],
    ['states contradictory usage', { usage: 'inconsistent' }],
    ['answers half a body', { body: 'truncated' }],
  ])('P2: %s: the hold stays, unknown, and nothing is sent again', async (name, switches) => {
    await stage.provider.behave({ times: 1, do: switches });
    const before = (await readBudget(stage.books.ledger, 'team-a'))?.unknown_amount ?? 0n;
    const handle = await stage.start(`plain ${name}`, { route: 'plain' });
    await expect
      .poll(() => handle.query<string>('explain'), { timeout: 10_000 })
      .toContain('UNKNOWN');
    const { received } = (await stage.provider.truth()).totals;
    await handle.signal('lookUpNow', {});
    await handle.query('explain');
    expect((await stage.provider.truth()).totals.received).toBe(received);
    const after = await readBudget(stage.books.ledger, 'team-a');
    expect(after?.unknown_amount).toBe(before + 40n);
    await handle.terminate('the test is over');
  });
});

describe('doctor', () => {
  test('says who serves the queues, that the clock of a test database can be moved, and exits 3', async () => {
    const run = await runCli(['doctor', '--json'], {
      DATABASE_URL: stage.books.databaseUrl,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
    });
    const findings = JSON.parse(run.stdout) as { check: string; ok: boolean; detail: string }[];
    const found = Object.fromEntries(
      findings.map(({ check, ok, detail }) => [check, { ok, detail }]),
    );
    expect(found['books']).toEqual({ ok: true, detail: 'whole' });
    expect(found['ledger clock']?.ok).toBe(false);
    expect(found['ledger clock']?.detail).toContain('test database');
    expect(found['worker']).toEqual({ ok: true, detail: 'all queues are served' });
    expect(run.code).toBe(3);
    expect(run.stderr).toContain('checks failed');
  });
});
