// `fallback_hold: upfront`: the dearest route of the chain is held from the start, and moves over.

import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addScope, setPrice } from '../../ledger/administer.js';
import { amount } from '../../domain/money.js';
import type { ObservationJson } from '../../domain/observation.js';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { nextAttempt, placeHold } from '../../ledger/admit.js';
import { withdraw } from '../../ledger/fence.js';
import { readBudget, readOperation, readTimeline } from '../../ledger/read.js';
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
} from '../support/ledger-facts.js';

const CHEAP = offer('fake-priced', 4);
const DEAR = offer('fake-fallback', 4);
let books: TestLedger;

beforeEach(async () => {
  books = await createTestLedger('upfront');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 10n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
  await priceRoute(books.ledger, 'fake-fallback', 2n);
});
afterEach(async () => {
  await books.expectBooksWhole();
  await books.close();
});

const upfront = (operation: string, routes = [CHEAP, DEAR]) =>
  ask(operation, 4, {
    chain: {
      routes,
      fallbackWhileUnknown: 'wait',
      fallbackHold: 'upfront',
      sameRouteAttempts: 1,
    },
  });
const balance = () => readBudget(books.ledger, 'team-a');

/** Sends the newest attempt and records what it was answered, with where to go on to. */
async function fails(snapshot: OperationSnapshot, seen: ObservationJson, next = DEAR) {
  const claim = randomUUID();
  await fence(books.ledger, snapshot, claim);
  const answer = await observe(books.ledger, snapshot, seen, { claim, next });
  if (answer.snapshot == null) throw new Error(answer.status);
  return answer.snapshot;
}

test('P1: holds the dearest route, refuses by it, moves the hold over unchanged and captures it', async () => {
  const first = await placed(books.ledger, upfront('op-1'));
  expect(first.chain.fallbackHold).toBe('upfront');
  expect(first.attempts[0]?.heldAmount).toBe('8');
  expect(await balance()).toMatchObject({ held_amount: 8n, available_amount: 2n });
  expect(await placeHold(books.ledger, upfront('op-2'))).toMatchObject({
    status: 'refused',
    refusal: { reason: 'exceeds_available', neededAmount: '8', availableAmount: '2' },
  });
  const second = await fails(first, rejected);
  expect(second.attempts.map(({ phase, heldAmount }) => [phase, heldAmount])).toEqual([
    ['free', '0'],
    ['not_sent', '8'],
  ]);
  expect(await balance()).toMatchObject({ held_amount: 8n, available_amount: 2n });
  await fence(books.ledger, second);
  await observe(books.ledger, second, charge('8'));
  expect(await balance()).toMatchObject({ held_amount: 0n, captured_amount: 8n });
  const moved = (await readTimeline(books.ledger, first.operationKey)).filter(
    (event) => event.kind === 'hold_placed',
  );
  expect(moved.map(({ detail }) => [detail['amount'], detail['takenOverFrom']])).toEqual([
    ['8', undefined],
    ['8', 1],
  ]);
});

test('without it each attempt holds its own route, and a fallback can be refused', async () => {
  const first = await placed(books.ledger, ask('op-1', 4, { routes: [CHEAP, DEAR] }));
  expect(first.attempts[0]?.heldAmount).toBe('4');
  await placed(books.ledger, ask('op-2', 4));
  const ended = await fails(first, rejected);
  expect(ended).toMatchObject({ outcome: 'refused', refusal: { neededAmount: '8' } });
});

test('takes the hold over without a comparison: nobody else could have had it', async () => {
  const first = await placed(books.ledger, upfront('op-1'));
  await openBudget(books.ledger, { budgetId: 'later', accountId: 'other', limit: 1n });
  await addScope(books.ledger, { budgetId: 'later', kind: 'account', value: 'acme' });
  const noConnection = { ...rejected, proof: 'no_connection' } as ObservationJson;
  const again = await fails(first, noConnection, CHEAP);
  expect(again.attempts.map(({ route, heldAmount }) => [route, heldAmount])).toEqual([
    ['fake-priced', '0'],
    ['fake-priced', '8'],
  ]);
  expect((await readBudget(books.ledger, 'later'))?.held_amount).toBe(0n);
});

test.each([
  ['fits', 'op-1', 100n, '12'],
  ['does not fit', 'op-1', 10n, undefined],
])(
  'a fallback that costs more meanwhile is compared anew, and %s',
  async (_name, id, limit, held) => {
    const accountId = `account-${limit}`;
    await openBudget(books.ledger, { budgetId: 'own', accountId, limit });
    const first = await placed(books.ledger, { ...upfront(id), account: accountId });
    await priceRoute(books.ledger, 'fake-fallback', 3n);
    const ended = await fails(first, rejected);
    expect(ended.attempts[1]?.heldAmount).toBe(held);
    expect((await readBudget(books.ledger, 'own'))?.held_amount).toBe(BigInt(held ?? 0));
    if (held === undefined)
      expect(ended).toMatchObject({ outcome: 'refused', refusal: { neededAmount: '12' } });
  },
);

test('one route of the chain that cannot be priced refuses them all, and says which', async () => {
  const place = (name: string) => placeHold(books.ledger, upfront('op-1', [CHEAP, offer(name, 4)]));
  expect(await place('ghost')).toMatchObject({
    refusal: { reason: 'unpriced', detail: expect.stringContaining('"ghost"') as string },
  });
  const rate = (dimension: string) => ({ dimension, rateAmount: amount(1n), perCount: 1n });
  await setPrice(books.ledger, {
    route: 'imaged',
    unit: 'credit',
    rates: ['request', 'input_tokens', 'output_tokens', 'images'].map(rate),
  });
  expect(await place('imaged')).toMatchObject({
    refusal: { reason: 'unbounded', dimension: 'images' },
  });
  await setPrice(books.ledger, { route: 'dollars', unit: 'usd', rates: [rate('request')] });
  expect(await place('dollars')).toMatchObject({ refusal: { reason: 'unpriced' } });
});

test('after a withdrawal the hold was given back, so the dearest is compared again', async () => {
  const first = await placed(books.ledger, upfront('op-1'));
  const { operationKey } = first;
  await withdraw(books.ledger, { operationKey, reason: 'test' });
  const next = { operationKey, afterAttempt: 1, offer: CHEAP, ask: 'ask-1' };
  expect(await nextAttempt(books.ledger, next)).toMatchObject({
    status: 'placed',
    snapshot: { attempts: [{ phase: 'withdrawn' }, { heldAmount: '8' }] },
  });
});

test('an operation that was stored before there was a choice holds each route by itself', async () => {
  const first = await placed(books.ledger, ask('op-1', 4, { routes: [CHEAP, DEAR] }));
  await books.admin.query("update ledger.operation set chain = chain - 'fallbackHold'");
  const stored = await readOperation(books.ledger, { accountId: 'acme', operationId: 'op-1' });
  expect(stored?.chain.fallbackHold).toBe('each');
  expect((await fails(first, rejected)).attempts[1]?.heldAmount).toBe('8');
});
