// A provider where nothing can be looked up, but where a repeat under the same key is a question.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { readBudget, readOperation, readTimeline } from '../../ledger/read.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;

beforeAll(async () => {
  stage = await superviseFor({ label: 'replay_flow' });
});
afterAll(async () => {
  await stage.books.expectBooksWhole();
  await stage.close();
});

test('P4: an answer that was lost is learned by repeating the request: received 2, executed 1', async () => {
  await stage.provider.behave({ times: 1, do: { drop: 'after_accepting' } });
  const handle = await stage.start('lost', { route: 'repeated' });
  await expect
    .poll(() => handle.query<string>('explain'), { timeout: 10_000 })
    .toContain('UNKNOWN');
  expect(await readBudget(stage.books.ledger, 'team-a')).toMatchObject({ unknown_amount: 40n });
  expect(await handle.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
  expect((await stage.provider.truth()).totals).toEqual(
    expect.objectContaining({ received: 2, accepted: 1, charged: '40' }),
  );
  const { ledger } = stage.books;
  const id = { accountId: stage.accountId, operationId: 'lost' };
  const snapshot = await readOperation(ledger, id);
  expect(snapshot?.attempts).toMatchObject([{ phase: 'charged', questionCount: 1 }]);
  const events = await readTimeline(ledger, snapshot?.operationKey ?? '');
  expect(events.map((event) => event.kind)).toEqual([
    'hold_placed',
    'fence_taken',
    'unknown',
    'replayed',
    'charged',
  ]);
  expect(events.at(-1)?.evidence_source).toBe('lookup');
});

test('P2: where a stop was asked for nothing is repeated, and the hold stays', async () => {
  await stage.provider.behave({ times: 1, do: { drop: 'after_accepting' } });
  const handle = await stage.start('stopped', { route: 'repeated' });
  await expect
    .poll(() => handle.query<string>('explain'), { timeout: 10_000 })
    .toContain('UNKNOWN');
  const id = { accountId: stage.accountId, operationId: 'stopped' };
  await handle.cancel();
  await expect
    .poll(async () => (await readOperation(stage.books.ledger, id))?.cancel, { timeout: 10_000 })
    .toBe('unsupported');
  // From here on a replay would be due; several rounds of asking go by.
  await stage.books.admin.query("select ledger.move_clock('10 seconds')");
  await handle.signal('lookUpNow', {});
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  const snapshot = await readOperation(stage.books.ledger, id);
  expect(snapshot?.attempts).toMatchObject([{ phase: 'unknown', heldAmount: '40' }]);
  expect(await stage.provider.receivedUnder(`${snapshot?.operationKey ?? '?'}-`)).toBe(1);
  await handle.terminate('test');
});
