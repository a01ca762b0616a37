import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { amount } from '../../domain/money.js';
import { nextStep } from '../../domain/next-step.js';
import { encodeObservation } from '../../domain/observation.js';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { nextAttempt, placeHold } from '../../ledger/admit.js';
import { endAsk, giveUp, requestCancel, withdraw } from '../../ledger/fence.js';
import { readBudget, readOperation, readTimeline } from '../../ledger/read.js';
import { markUnknown, recordChargeReport } from '../../ledger/record.js';
import { createTestLedger, type TestLedger } from '../support/ledger-database.js';
import {
  ask,
  charge,
  fence,
  floor,
  observe,
  offer,
  openBudget,
  placed,
  priceRoute,
  rejected,
  running,
  silence,
  statusOf,
} from '../support/ledger-facts.js';

let books: TestLedger;

beforeEach(async () => {
  books = await createTestLedger('fence');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
  await priceRoute(books.ledger, 'fake-fallback', 2n);
});
afterEach(async () => {
  await books.expectBooksWhole();
  await books.close();
});

const balance = () => readBudget(books.ledger, 'team-a');
const moveClock = (interval: string) =>
  books.admin.query('select ledger.move_clock($1::interval)', [interval]);

async function sent(operation = 'op-1', tokens = 40) {
  const snapshot = await placed(books.ledger, ask(operation, tokens));
  const claim = randomUUID();
  await fence(books.ledger, snapshot, claim);
  return { snapshot, claim };
}

describe('totals that no book can hold', () => {
  test('P3: one is kept as evidence with the hold, and the next true total is booked', async () => {
    const most = (2n ** 63n - 1n).toString();
    await openBudget(books.ledger, { budgetId: 'endless', accountId: 'rich' });
    const rich = { account: 'rich' };
    const first = await placed(books.ledger, ask('first', 40, rich));
    await fence(books.ledger, first);
    await observe(books.ledger, first, charge('40'));
    const second = await placed(books.ledger, ask('second', 40, rich));
    await fence(books.ledger, second);
    for (const total of [most, '9'.repeat(40)]) {
      expect(await observe(books.ledger, second, charge(total))).toMatchObject({
        status: 'retained',
        snapshot: { state: 'unknown', attempts: [{ heldAmount: '40' }] },
      });
    }
    expect((await observe(books.ledger, second, charge('39'))).status).toBe('captured');
    expect((await observe(books.ledger, second, charge('9'.repeat(40)))).status).toBe(
      'noted_after_end',
    );
    expect(await readBudget(books.ledger, 'endless')).toMatchObject({
      held_amount: 0n,
      captured_amount: 79n,
    });
  });
});

describe('P4: the fence', () => {
  test('the same claim is told that the fence is its own, with less time left', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    const claim = randomUUID();
    const first = await fence(books.ledger, snapshot, claim);
    await moveClock('3 seconds');
    const second = await fence(books.ledger, snapshot, claim);
    if (first.status !== 'taken' || second.status !== 'own') throw new Error(second.status);
    expect(first.sendMsLeft).toBeGreaterThan(4_000);
    expect(second.sendMsLeft).toBeLessThan(2_001);
    expect((await fence(books.ledger, snapshot)).status).toBe('taken_by_other');
  });

  test('it refuses after the time to be sent, after a wish to stop, after the ask has ended', async () => {
    const late = await placed(books.ledger, ask('late', 10));
    const stopped = await placed(books.ledger, ask('stopped', 10));
    await requestCancel(books.ledger, {
      operationKey: stopped.operationKey,
      by: 'ana',
      isSupported: false,
    });
    const ended = await placed(books.ledger, ask('ended', 10));
    await endAsk(books.ledger, {
      account: 'acme',
      operation: 'ended',
      ask: 'ask-1',
      reason: 'test',
    });
    await moveClock('11 minutes');
    expect(await fence(books.ledger, late)).toMatchObject({
      status: 'refused',
      reason: 'too_late',
    });
    expect(await fence(books.ledger, stopped)).toMatchObject({
      status: 'refused',
      reason: 'ended',
    });
    expect(await fence(books.ledger, ended)).toMatchObject({ status: 'refused', reason: 'ended' });
    await withdraw(books.ledger, { operationKey: late.operationKey, reason: 'too late' });
    expect((await balance())?.held_amount).toBe(0n);
  });

  test('a sender gives up under its own claim only, from sending and from unknown, and not after a trace', async () => {
    const { snapshot, claim } = await sent();
    const attempt = { operationKey: snapshot.operationKey, attemptNo: 1 };
    expect((await giveUp(books.ledger, { ...attempt, claim: randomUUID() })).status).toBe(
      'not_yours',
    );
    await markUnknown(books.ledger, {
      operationKey: snapshot.operationKey,
      reason: 'local_end',
      detail: 'gone',
    });
    expect((await giveUp(books.ledger, { ...attempt, claim })).status).toBe('given_up');
    expect((await balance())?.held_amount).toBe(0n);

    const other = await sent('op-2');
    await observe(books.ledger, other.snapshot, running);
    const kept = await giveUp(books.ledger, {
      operationKey: other.snapshot.operationKey,
      attemptNo: 1,
      claim: other.claim,
    });
    expect(kept.status).toBe('unchanged');
    expect((await balance())?.held_amount).toBe(40n);
  });

  test('an ask that ended gives up what its own dispatch claimed, and nothing of a later ask', async () => {
    const { claim } = await sent();
    await endAsk(books.ledger, {
      account: 'acme',
      operation: 'op-1',
      ask: 'ask-1',
      reason: 'away',
      claim,
    });
    expect((await balance())?.held_amount).toBe(0n);
    await placeHold(books.ledger, ask('op-2', 40));
    await placeHold(books.ledger, ask('op-2', 40, { ask: 'ask-2' }));
    await endAsk(books.ledger, {
      account: 'acme',
      operation: 'op-2',
      ask: 'ask-1',
      reason: 'away',
    });
    expect((await balance())?.held_amount).toBe(40n);
  });
});

describe('P2 and P6: silence', () => {
  test('no answer, however often and however long, keeps the whole hold as unknown', async () => {
    const { snapshot, claim } = await sent();
    await observe(books.ledger, snapshot, silence, { claim });
    for (const days of [1, 30, 365]) {
      await moveClock(`${days} days`);
      await observe(books.ledger, snapshot, { ...silence, reason: 'not_found' } as typeof silence);
    }
    expect(await balance()).toMatchObject({
      held_amount: 40n,
      unknown_amount: 40n,
      unknown_count: 1,
    });
    const now = await readOperation(books.ledger, { accountId: 'acme', operationId: 'op-1' });
    expect(now?.attempts[0]?.reasons.map((entry) => entry.reason)).toEqual([
      'no_answer',
      'not_found',
    ]);
  });

  test('a sender that is overdue counts as unknown, although nobody is left to write it', async () => {
    await sent();
    expect((await balance())?.unknown_amount).toBe(0n);
    await moveClock('7 seconds');
    expect(await balance()).toMatchObject({ held_amount: 40n, unknown_amount: 40n });
  });

  test('a sender that was written off may still book its answer', async () => {
    const { snapshot, claim } = await sent();
    await markUnknown(books.ledger, {
      operationKey: snapshot.operationKey,
      reason: 'local_end',
      detail: 'heartbeat',
    });
    expect((await observe(books.ledger, snapshot, charge('25'), { claim })).status).toBe(
      'captured',
    );
    expect(await balance()).toMatchObject({
      held_amount: 0n,
      captured_amount: 25n,
      available_amount: 75n,
    });
  });
});

describe('P3: evidence', () => {
  test('a rejection from the sender frees the attempt and admits the next route in the same step', async () => {
    const { snapshot, claim } = await sent();
    const answer = await observe(books.ledger, snapshot, rejected, {
      claim,
      next: offer('fake-fallback', 40),
    });
    expect(answer.snapshot?.attempts.map((attempt) => [attempt.phase, attempt.heldAmount])).toEqual(
      [
        ['free', '0'],
        ['not_sent', '80'],
      ],
    );
    expect((await balance())?.held_amount).toBe(80n);
  });

  test('a refused fallback closes the operation with its numbers', async () => {
    const { snapshot, claim } = await sent('op-1', 60);
    const answer = await observe(books.ledger, snapshot, rejected, {
      claim,
      next: offer('fake-fallback', 60),
    });
    expect(answer.snapshot).toMatchObject({
      state: 'released',
      outcome: 'refused',
      refusal: { neededAmount: '120' },
    });
    expect(statusOf(await placeHold(books.ledger, ask('op-1', 60)))).toBe('closed');
  });

  test('a rejection that comes by a lookup, under a foreign claim, or against a trace frees nothing', async () => {
    const { snapshot, claim } = await sent();
    await expect(observe(books.ledger, snapshot, rejected)).rejects.toThrow(
      'only the sender can prove',
    );
    expect((await observe(books.ledger, snapshot, rejected, { claim: randomUUID() })).status).toBe(
      'not_yours',
    );
    await observe(books.ledger, snapshot, running);
    expect((await observe(books.ledger, snapshot, rejected, { claim })).status).toBe('retained');
    expect(await balance()).toMatchObject({ held_amount: 40n, unknown_amount: 40n });
  });
});

describe('P5: the truth is bookable', () => {
  test('a charge over the hold is captured in full, counted as overrun, and blocks the next admission', async () => {
    const { snapshot } = await sent();
    await observe(books.ledger, snapshot, charge('130'));
    expect(await balance()).toMatchObject({
      captured_amount: 130n,
      overrun_amount: 90n,
      available_amount: -30n,
      held_amount: 0n,
    });
    expect(statusOf(await placeHold(books.ledger, ask('op-2', 1)))).toBe('exceeds_available');
  });

  test('the same report twice is a duplicate event and changes no amount; one without an attempt is kept', async () => {
    const { snapshot } = await sent();
    const report = {
      provider: 'metered',
      attemptKey: snapshot.attempts[0]?.attemptKey ?? '',
      report: {
        basis: 'final',
        amount: '30' as never,
        evidence: { source: 'webhook', reference: 'w' },
      },
    } as const;
    expect((await recordChargeReport(books.ledger, report)).status).toBe('captured');
    const before = await balance();
    expect((await recordChargeReport(books.ledger, report)).status).toBe('duplicate');
    expect(
      (await recordChargeReport(books.ledger, { ...report, attemptKey: 'nobody-1' })).status,
    ).toBe('unmatched');
    expect(await balance()).toEqual(before);
    const kinds = (await readTimeline(books.ledger, snapshot.operationKey)).map(
      (event) => event.kind,
    );
    expect(kinds).toEqual(['hold_placed', 'fence_taken', 'charged', 'duplicate']);
    const { rows } = await books.admin.query('select attempt_key from ledger.unmatched_report');
    expect(rows).toEqual([{ attempt_key: 'nobody-1' }]);
  });

  test('a charge is booked whatever the provider puts into its ids', async () => {
    for (const [index, remoteId] of ['a\u0000b', 'half \ud800', 'x'.repeat(100_000)].entries()) {
      const { snapshot } = await sent(`odd-${index}`, 10);
      const odd = encodeObservation({
        kind: 'charge',
        basis: 'final',
        amount: amount(10n),
        usage: { output_tokens: 10 },
        remoteId,
        evidence: { source: 'response', reference: remoteId, status: remoteId },
      });
      expect((await observe(books.ledger, snapshot, odd)).status).toBe('captured');
    }
    expect(await balance()).toMatchObject({ captured_amount: 30n, held_amount: 0n });
  });

  test('a charge for an attempt that was never sent passes through dispatched', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    await observe(books.ledger, snapshot, charge('40'));
    const events = await readTimeline(books.ledger, snapshot.operationKey);
    expect(events.map((event) => event.to_state)).toEqual(['held', 'dispatched', 'settled']);
  });

  test('a final 0 on a priced route is free without work, and unknown with it', async () => {
    const idle = await sent('idle', 10);
    expect(
      (await observe(books.ledger, idle.snapshot, charge('0', { output_tokens: 0 }))).status,
    ).toBe('ended_free');
    const worked = await sent('worked', 10);
    expect(
      (await observe(books.ledger, worked.snapshot, charge('0', { output_tokens: 5 }))).status,
    ).toBe('retained');
    expect(await balance()).toMatchObject({ held_amount: 10n, unknown_amount: 10n });
  });

  test('a floor raises the hold beyond what is available, and a total below it is contradictory', async () => {
    const { snapshot } = await sent();
    await observe(books.ledger, snapshot, floor('150'));
    expect(await balance()).toMatchObject({ held_amount: 150n, available_amount: -50n });
    expect((await observe(books.ledger, snapshot, charge('149'))).status).toBe('retained');
    expect((await observe(books.ledger, snapshot, charge('150'))).status).toBe('captured');
  });

  test('usage is priced by the version of its admission; a dimension without a rate keeps the hold', async () => {
    const { snapshot } = await sent();
    await priceRoute(books.ledger, 'fake-priced', 9n);
    const usage = { request: 1, input_tokens: 7, images: 1 };
    const evidence = { source: 'response', reference: 'r' } as const;
    const unknown = await observe(books.ledger, snapshot, {
      kind: 'charge',
      basis: 'final',
      usage,
      evidence,
    });
    expect(unknown.snapshot?.attempts[0]?.reasons.map((entry) => entry.reason)).toEqual([
      'price_missing',
    ]);
    const known = { request: 1, input_tokens: 7, output_tokens: 33 };
    await observe(books.ledger, snapshot, {
      kind: 'charge',
      basis: 'final',
      usage: known,
      evidence,
    });
    expect(await balance()).toMatchObject({ captured_amount: 33n, held_amount: 0n });
  });
});

describe('the next attempt', () => {
  test('is refused after its ask has ended, also where the chain allows one beside an unknown attempt, and the snapshot says so', async () => {
    const request = ask('op-1', 10, {
      chain: {
        routes: [offer('fake-priced', 10), offer('fake-fallback', 10)],
        fallbackWhileUnknown: 'allow',
        fallbackHold: 'each',
        sameRouteAttempts: 1,
      },
    });
    const snapshot = await placed(books.ledger, request);
    await fence(books.ledger, snapshot);
    await observe(books.ledger, snapshot, silence);
    const before = await readOperation(books.ledger, { accountId: 'acme', operationId: 'op-1' });
    expect(before?.fallbackProblem).toBeNull();
    expect(nextStep(before as OperationSnapshot).kind).toBe('next_attempt');
    await endAsk(books.ledger, {
      account: 'acme',
      operation: 'op-1',
      ask: 'ask-1',
      reason: 'away',
    });
    const after = await readOperation(books.ledger, { accountId: 'acme', operationId: 'op-1' });
    expect(after?.fallbackProblem).toBe('ask_ended');
    expect(nextStep(after as OperationSnapshot).kind).toBe('ask');
    expect((await balance())?.held_amount).toBe(10n);
  });

  test('where the chain allows it, adds its hold beside the unknown one, and a charge of both is booked', async () => {
    const routes = [offer('fake-priced', 10), offer('fake-fallback', 10)] as const;
    const request = ask('op-1', 10, {
      chain: { routes, fallbackWhileUnknown: 'allow', fallbackHold: 'each', sameRouteAttempts: 1 },
    });
    const snapshot = await placed(books.ledger, request);
    await fence(books.ledger, snapshot);
    await observe(books.ledger, snapshot, silence);
    const next = await nextAttempt(books.ledger, {
      operationKey: snapshot.operationKey,
      afterAttempt: 1,
      offer: routes[1],
      ask: 'ask-1',
    });
    if (next.status !== 'placed') throw new Error(next.status);
    expect(await balance()).toMatchObject({ held_amount: 30n, unknown_amount: 10n });
    await fence(books.ledger, next.snapshot);
    await observe(books.ledger, next.snapshot, charge('20'), { attemptNo: 2 });
    expect(await balance()).toMatchObject({ held_amount: 10n, captured_amount: 20n });
    await observe(books.ledger, next.snapshot, charge('10'), { attemptNo: 1 });
    expect(await balance()).toMatchObject({ held_amount: 0n, captured_amount: 30n });
  });
});
