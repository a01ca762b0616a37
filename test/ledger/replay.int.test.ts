// When an attempt may be repeated under its key, and what that takes away from its own sender.

import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { endAsk, giveUp, requestCancel } from '../../ledger/fence.js';
import { nextAttempt } from '../../ledger/admit.js';
import { readBudget, readTimeline } from '../../ledger/read.js';
import { replayTerms } from '../../ledger/replay.js';
import { createTestLedger, type TestLedger } from '../support/ledger-database.js';
import {
  ask,
  charge,
  fence,
  observe,
  offer,
  openBudget,
  placed,
  priceRoute,
  rejected,
  silence,
} from '../support/ledger-facts.js';

const DAY_MS = 86_400_000;
let books: TestLedger;

beforeEach(async () => {
  books = await createTestLedger('replay');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
  await priceRoute(books.ledger, 'fake-fallback', 2n);
});
afterEach(async () => {
  await books.expectBooksWhole();
  await books.close();
});

const passes = (interval: string) =>
  books.admin.query('select ledger.move_clock($1::interval)', [interval]);

async function sent(claim: string = randomUUID(), extra: Parameters<typeof ask>[2] = {}) {
  const snapshot = await placed(books.ledger, ask('op-1', 10, extra));
  await fence(books.ledger, snapshot, claim);
  const { operationKey } = snapshot;
  const mayReplay = async (attemptNo = 1): Promise<string> => {
    const terms = await replayTerms(books.ledger, { operationKey, attemptNo, windowMs: DAY_MS });
    return terms.status === 'refused' ? terms.reason : terms.status;
  };
  return { snapshot, operationKey, claim, mayReplay };
}

test('is permitted from when the answer is overdue until half the window has passed', async () => {
  const { mayReplay } = await sent();
  expect(await mayReplay()).toBe('not_due');
  await passes('5 seconds');
  expect(await mayReplay()).toBe('not_due');
  await passes('1 second');
  expect(await mayReplay()).toBe('permitted');
  await passes('11 hours 59 minutes 50 seconds');
  expect(await mayReplay()).toBe('permitted');
  await passes('4 seconds');
  expect(await mayReplay()).toBe('window_passed');
});

test('hands out what the first send was made of, places no hold and is an event once', async () => {
  const { operationKey, snapshot, mayReplay } = await sent();
  await passes('6 seconds');
  expect(await mayReplay()).toBe('permitted');
  const terms = await replayTerms(books.ledger, { operationKey, attemptNo: 1, windowMs: DAY_MS });
  expect(terms).toEqual({
    status: 'permitted',
    offer: offer('fake-priced', 10),
    attemptKey: `${operationKey}-1`,
    unit: 'credit',
    requestText: '{"messages":[]}',
  });
  const kinds = (await readTimeline(books.ledger, operationKey)).map((event) => event.kind);
  expect(kinds).toEqual(['hold_placed', 'fence_taken', 'replayed']);
  expect(await readBudget(books.ledger, 'team-a')).toMatchObject({ held_amount: 10n });
  await observe(books.ledger, snapshot, charge('7'));
  expect(await mayReplay()).toBe('ended');
  expect(await readBudget(books.ledger, 'team-a')).toMatchObject({ captured_amount: 7n });
});

test('is refused once a stop was asked for', async () => {
  const { operationKey, mayReplay } = await sent();
  await passes('6 seconds');
  await requestCancel(books.ledger, { operationKey, by: 'ana', isSupported: false });
  expect(await mayReplay()).toBe('cancel_requested');
});

test('is refused for what was not sent, for an ask that has ended and for an unknown attempt', async () => {
  const waiting = await placed(books.ledger, ask('op-2', 10));
  const { operationKey } = waiting;
  const request = { operationKey, attemptNo: 1, windowMs: DAY_MS };
  expect(await replayTerms(books.ledger, request)).toMatchObject({ reason: 'not_sent' });
  const { mayReplay } = await sent();
  await passes('6 seconds');
  expect(await mayReplay(2)).toBe('not_found');
  const ending = { account: 'acme', operation: 'op-1', ask: 'ask-1', reason: 'away' };
  await endAsk(books.ledger, ending);
  expect(await mayReplay()).toBe('ask_ended');
});

test('is refused where another attempt was charged: the repeat could buy the work again', async () => {
  const routes = [offer('fake-priced', 10), offer('fake-fallback', 10)] as const;
  const { snapshot, operationKey, mayReplay } = await sent(randomUUID(), {
    chain: { routes, fallbackWhileUnknown: 'allow', fallbackHold: 'each', sameRouteAttempts: 1 },
  });
  await observe(books.ledger, snapshot, silence);
  const next = { operationKey, afterAttempt: 1, offer: routes[1], ask: 'ask-1' };
  const second = await nextAttempt(books.ledger, next);
  if (second.status !== 'placed') throw new Error(second.status);
  await fence(books.ledger, second.snapshot);
  await passes('6 seconds');
  await observe(books.ledger, second.snapshot, charge('20'), { attemptNo: 2 });
  expect(await mayReplay()).toBe('charged');
});

test('P3: after a replay no proof of the first sender frees the hold', async () => {
  const { snapshot, operationKey, claim, mayReplay } = await sent();
  await passes('6 seconds');
  expect(await mayReplay()).toBe('permitted');
  const given = await giveUp(books.ledger, { operationKey, attemptNo: 1, claim });
  expect(given.status).toBe('unchanged');
  const refusal = await observe(books.ledger, snapshot, rejected, { claim });
  expect(refusal.status).toBe('retained');
  const ending = { account: 'acme', operation: 'op-1', ask: 'ask-1', reason: 'away', claim };
  await endAsk(books.ledger, ending);
  expect(await readBudget(books.ledger, 'team-a')).toMatchObject({ held_amount: 10n });
});
