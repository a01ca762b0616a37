// Each end that a call can have. With UPDATE_HISTORIES=1 the histories are saved for the replay
// tests; do so when a change of order was meant, beside the old ones.

import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { saveHistory } from '../support/save-history.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;

beforeAll(async () => {
  stage = await superviseFor({ label: 'ends', limit: 200n });
});
afterAll(async () => {
  await stage.books.expectBooksWhole();
  await stage.close();
});

const save = (handle: WorkflowHandle, what: string): Promise<void> =>
  saveHistory(handle, `llm-call-0.1.0-${what}`);

describe('the ends of a call', () => {
  test('settled at once', async () => {
    const handle = await stage.start('settled');
    expect((await handle.result()).outcome).toBe('settled');
    await save(handle, 'settled-at-once');
  });

  test('unknown, then settled', async () => {
    await stage.provider.behave({
      times: 1,
      do: { answer: 'late', until_released: true, lookup: { finds: 'after_release' } },
    });
    const handle = await stage.start('unknown');
    await expect
      .poll(() => handle.query<string>('explain'), { timeout: 10_000 })
      .toContain('UNKNOWN');
    await stage.provider.releaseAll();
    await handle.signal('lookUpNow', { by: 'ana' });
    expect((await handle.result()).outcome).toBe('settled');
    await save(handle, 'unknown-then-settled');
  });

  test('refused', async () => {
    const handle = await stage.start('refused', { maxTokens: 500 });
    expect((await handle.result()).outcome).toBe('refused');
    await save(handle, 'refused');
  });

  test('withdrawn, because a stop was asked for before it was sent', async () => {
    const received = (await stage.provider.truth()).totals.received;
    const handle = await stage.start('withdrawn', {}, { startDelay: 400 });
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow();
    expect((await handle.describe()).status.name).toBe('CANCELLED');
    expect((await stage.provider.truth()).totals.received).toBe(received);
    const { rows } = await stage.books.admin.query(
      "select outcome, cancel from ledger.operation where operation_id = 'withdrawn'",
    );
    expect(rows).toEqual([{ outcome: 'stopped', cancel: 'confirmed_stopped' }]);
    await save(handle, 'withdrawn');
  });

  test('free, because every route refused it before work', async () => {
    await stage.provider.behave({ times: 2, do: { status: 503 } });
    const handle = await stage.start('free', { maxTokens: 20 });
    expect(await handle.result()).toMatchObject({
      outcome: 'released',
      proof: 'documented_rejection',
    });
    await save(handle, 'free');
  });
});
