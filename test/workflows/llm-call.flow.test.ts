import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readBudget, readTimeline } from '../../ledger/read.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;

beforeAll(async () => {
  stage = await superviseFor({ label: 'flow', limit: 10_000n });
});
afterEach(async () => {
  await stage.books.expectBooksWhole();
});
afterAll(async () => {
  await stage.close();
});

const kindsOf = async (operationKey: string | null): Promise<string[]> =>
  (await readTimeline(stage.books.ledger, operationKey ?? '')).map((event) => event.kind);

describe('llmCall', () => {
  test('P4: a call is sent once, settled by its answer, in at most 25 events', async () => {
    const handle = await stage.start('now');
    const result = await handle.result();
    expect(result).toMatchObject({ outcome: 'settled', chargedAmount: '40', attemptCount: 1 });
    expect(result.answerRef).toMatch(/^sha256:/);
    expect(await kindsOf(result.operationKey)).toEqual(['hold_placed', 'fence_taken', 'charged']);
    expect(await stage.provider.receivedUnder(result.operationKey ?? '-')).toBe(1);
    const history = await handle.fetchHistory();
    expect(history.events?.length).toBeLessThanOrEqual(25);
  });

  test('P2: an answer that comes too late leaves the hold whole until a lookup finds the charge', async () => {
    await stage.provider.behave({
      times: 1,
      do: { answer: 'late', until_released: true, lookup: { finds: 'after_release' } },
    });
    const handle = await stage.start('late');
    await expect
      .poll(async () => (await readBudget(stage.books.ledger, 'team-a'))?.unknown_amount)
      .toBe(40n);
    expect(await handle.query<string>('explain')).toContain('UNKNOWN');
    await stage.provider.releaseAll();
    await handle.signal('lookUpNow', {});
    const result = await handle.result();
    expect(result).toMatchObject({ outcome: 'settled', chargedAmount: '40', answerRef: null });
    expect(await stage.provider.receivedUnder(result.operationKey ?? '-')).toBe(1);
  });

  test('a malformed or empty signal is ignored and stalls nothing', async () => {
    await stage.provider.behave({
      times: 1,
      do: { answer: 'late', until_released: true, lookup: { finds: 'after_release' } },
    });
    const handle = await stage.start('signals');
    await expect.poll(() => handle.query<string>('explain')).toContain('UNKNOWN');
    for (const argument of [undefined, null, 7, 'text', { by: 3 }, []]) {
      await handle.signal('lookUpNow', argument);
    }
    await handle.signal('lookUpNow');
    await handle.signal('noSuchSignal', {});
    await stage.provider.releaseAll();
    await handle.signal('lookUpNow');
    expect(await handle.result()).toMatchObject({ outcome: 'settled' });
  });

  test('a call that the provider refuses before work goes on to the fallback under a new hold', async () => {
    await stage.provider.behave({ match: { model: 'fake-priced' }, times: 1, do: { status: 503 } });
    const result = await (await stage.start('fallback')).result();
    expect(result).toMatchObject({
      outcome: 'settled',
      route: 'fake-fallback',
      chargedAmount: '80',
    });
    expect(await kindsOf(result.operationKey)).toEqual([
      'hold_placed',
      'fence_taken',
      'free',
      'hold_placed',
      'fence_taken',
      'charged',
    ]);
  });

  test('a call that every route refuses before work is released with its proof', async () => {
    await stage.provider.behave({ times: 2, do: { status: 401 } });
    const result = await (await stage.start('rejected')).result();
    expect(result).toMatchObject({ outcome: 'released', proof: 'documented_rejection' });
  });

  test('a 500 after accepting is unknown, is not sent again, and is settled by the lookup', async () => {
    await stage.provider.behave({ times: 1, do: { fail_after_accepting: 500 } });
    const result = await (await stage.start('five-hundred')).result();
    expect(result).toMatchObject({ outcome: 'settled', chargedAmount: '40', attemptCount: 1 });
    expect(await kindsOf(result.operationKey)).toContain('unknown');
    expect(await stage.provider.receivedUnder(result.operationKey ?? '-')).toBe(1);
  });

  test('a refused call completes with its numbers, and nothing was sent', async () => {
    const before = (await stage.provider.truth()).totals.received;
    const result = await (
      await stage.start('too-much', { maxTokens: 1_000, route: 'fake-fallback' })
    ).result();
    expect(result.outcome).toBe('settled');
    const { available_amount } = (await readBudget(stage.books.ledger, 'team-a')) ?? {};
    const handles = [];
    for (let asked = 0n; asked <= (available_amount ?? 0n); asked += 2_000n) {
      handles.push(
        await stage.start(`fill-${asked}`, { maxTokens: 1_000, route: 'fake-fallback' }),
      );
    }
    const results = await Promise.all(handles.map((handle) => handle.result()));
    const refused = results.filter((one) => one.outcome === 'refused');
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect(refused[0]?.refusal).toMatchObject({
      reason: 'exceeds_available',
      neededAmount: '2000',
    });
    const { received } = (await stage.provider.truth()).totals;
    expect(received - before).toBe(1 + results.length - refused.length);
  });

  test('bad input fails the workflow with field, value and the way out', async () => {
    const before = (await stage.provider.truth()).totals.received;
    for (const [input, message] of [
      [{ maxTokens: -1 }, 'maxTokens is -1; give a whole number, 1 or more'],
      [{ maxTokens: 'many' }, 'maxTokens is "many"; give a whole number, 1 or more'],
      [{ maxTokens: 5_000 }, 'maxTokens is 5000; give a whole number, 1 to 1000'],
      [{ route: 'nowhere' }, 'route is "nowhere", which is not configured'],
      [{ accountId: '' }, 'accountId is empty'],
      [{ request: { messages: 'hello' } }, 'request.messages is "hello"'],
    ] as const) {
      const error = await (
        await stage.start(`bad-${message.length}-${message.slice(-6)}`, input)
      )
        .result()
        .catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(WorkflowFailedError);
      expect(String((error as WorkflowFailedError).cause?.message)).toContain(message);
    }
    expect((await stage.provider.truth()).totals.received).toBe(before);
  });

  test('an unknown account is refused with the command that creates it', async () => {
    const result = await (await stage.start('stranger', { accountId: 'stranger' })).result();
    expect(result.refusal?.detail).toContain('holdfast account create');
  });

  test('a cancel of the workflow in mid-call is a wish: the asking goes on, and it closes as Canceled', async () => {
    await stage.provider.behave({
      times: 1,
      do: { answer: 'late', until_released: true, lookup: { finds: 'after_release' } },
    });
    const handle = await stage.start('cancelled');
    await expect.poll(() => handle.query<string>('explain')).toContain('UNKNOWN');
    await handle.cancel();
    await expect.poll(() => handle.query<string>('explain')).toContain('wish to stop');
    await stage.provider.releaseAll();
    await handle.signal('lookUpNow');
    const error = await handle.result().catch((caught: unknown) => caught);
    expect((error as WorkflowFailedError).cause).toBeInstanceOf(CancelledFailure);
    const description = await handle.describe();
    expect(description.status.name).toBe('CANCELLED');
    const { rows } = await stage.books.admin.query<{ state: string; cancel: string }>(
      "select state, cancel from ledger.operation where operation_id = 'cancelled'",
    );
    expect(rows).toEqual([{ state: 'settled', cancel: 'unsupported' }]);
  });

  test('a second start of an operation that has ended is answered with its end, and sends nothing', async () => {
    const first = await (await stage.start('again', { maxTokens: 1 })).result();
    const second = await (await stage.start('again', { maxTokens: 1 })).result();
    expect(second).toEqual(first);
    expect(await stage.provider.receivedUnder(first.operationKey ?? '-')).toBe(1);
    const other = await (await stage.start('again', { maxTokens: 2 })).result();
    expect(other.refusal?.reason).toBe('key_reused');
  });
});
