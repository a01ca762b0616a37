import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createGate, type Gate } from '../../devstack/gate.js';
import { type Ledger, openLedger } from '../../ledger/connection.js';
import { readBudget } from '../../ledger/read.js';
import { createTestLedger, type TestLedger } from '../support/ledger-database.js';
import {
  ask,
  charge,
  fence,
  observe,
  openBudget,
  placed,
  priceRoute,
} from '../support/ledger-facts.js';
import { placeHold } from '../../ledger/admit.js';

let books: TestLedger;
let gate: Gate;
let gated: Ledger;

beforeEach(async () => {
  books = await createTestLedger('lost');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
  const url = new URL(books.databaseUrl);
  gate = await createGate({ target: { host: url.hostname, port: Number(url.port) } });
  url.hostname = gate.host;
  url.port = String(gate.port);
  gated = openLedger({ databaseUrl: url.toString() });
  await gated.query({ name: 'warm', text: 'select 1' });
});
afterEach(async () => {
  gate.pass();
  await gated.close();
  await gate.close();
  await books.expectBooksWhole();
  await books.close();
});

/** The statement is carried out, its answer is held, and then every connection dies. */
async function losingTheAnswer<T>(work: Promise<T>, isDone: () => Promise<boolean>): Promise<T> {
  while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 20));
  gate.cut();
  gate.pass();
  return work;
}

const phaseIs = async (phase: string): Promise<boolean> =>
  (await books.admin.query('select 1 from ledger.attempt where phase = $1', [phase])).rows.length >
  0;

describe('an answer of the ledger that is lost', () => {
  test('of a placement: it is asked again, and answered with the stored hold', async () => {
    gate.hold('to_client');
    const answer = await losingTheAnswer(placeHold(gated, ask('op-1', 40)), () =>
      phaseIs('not_sent'),
    );
    expect(answer.status).toBe('exists');
    expect((await readBudget(books.ledger, 'team-a'))?.held_amount).toBe(40n);
  });

  test('P4: of a fence: the same claim is told that it is its own, and nobody else gets it', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    gate.hold('to_client');
    const answer = await losingTheAnswer(fence(gated, snapshot, randomUUID()), () =>
      phaseIs('sending'),
    );
    expect(answer.status).toBe('own');
    expect((await fence(books.ledger, snapshot)).status).toBe('taken_by_other');
  });

  test('of a capture: it is recorded again as a duplicate, and booked once', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    const claim = randomUUID();
    await fence(books.ledger, snapshot, claim);
    gate.hold('to_client');
    const answer = await losingTheAnswer(observe(gated, snapshot, charge('40'), { claim }), () =>
      phaseIs('charged'),
    );
    expect(answer.status).toBe('duplicate');
    expect(await readBudget(books.ledger, 'team-a')).toMatchObject({
      captured_amount: 40n,
      held_amount: 0n,
    });
  });
});
