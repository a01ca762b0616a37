import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { amount } from '../../domain/money.js';
import {
  addScope,
  createAccount,
  createBudget,
  setBudgetFrozen,
  setPrice,
} from '../../ledger/administer.js';
import { placeHold } from '../../ledger/admit.js';
import { requestCancel, withdraw } from '../../ledger/fence.js';
import { readBudget, readRefusals } from '../../ledger/read.js';
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
  statusOf,
} from '../support/ledger-facts.js';

let books: TestLedger;

beforeEach(async () => {
  books = await createTestLedger('admission');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
});
afterEach(async () => {
  await books.expectBooksWhole();
  await books.close();
});

const place = async (...parameters: Parameters<typeof ask>): Promise<string> =>
  statusOf(await placeHold(books.ledger, ask(...parameters)));

describe('P1: place_hold', () => {
  test('answers each step of the script with its status', async () => {
    await openBudget(books.ledger, { budgetId: 'team-b', accountId: 'other', limit: 100n });
    const script: readonly [string, number, Parameters<typeof ask>[2], string][] = [
      ['op-1', 60, {}, 'placed'],
      ['op-1', 60, {}, 'exists'], //                             same call again: same answer
      ['op-1', 61, {}, 'key_reused'], //                         other terms
      ['op-1', 60, { account: 'other' }, 'placed'], //           another account is independent
      ['op-2', 41, {}, 'exceeds_available'],
      ['op-2', 101, {}, 'exceeds_limit'],
      ['op-2', 40, {}, 'placed'], //                             exactly the rest
      ['op-3', 1, {}, 'exceeds_available'],
      ['op-4', 1, { account: 'stranger' }, 'budget_not_found'],
      ['op-5', 1, { routes: [offer('fake-unpriced', 1)] }, 'unpriced'],
    ];
    for (const [operation, tokens, extra, status] of script) {
      expect([operation, tokens, await place(operation, tokens, extra)]).toEqual([
        operation,
        tokens,
        status,
      ]);
    }
  });

  test('a refusal states its numbers, is counted when it is repeated, and leaves no hold', async () => {
    await place('op-1', 40);
    const snapshot = await placed(books.ledger, ask('op-2', 40));
    await fence(books.ledger, snapshot);
    await books.ledger.call('mark_unknown', {
      operation_key: snapshot.operationKey,
      reason: 'local_end',
      detail: 'gone',
    });
    for (let count = 0; count < 3; count += 1) await place('op-3', 40);
    const [refusal] = await readRefusals(books.ledger, 'op-3');
    expect(refusal).toMatchObject({
      refusal_count: 3,
      numbers: { neededAmount: '40', availableAmount: '20', heldAmount: '80', unknownAmount: '40' },
    });
    expect(await readBudget(books.ledger, 'team-a')).toMatchObject({
      held_amount: 80n,
      available_amount: 20n,
    });
  });

  test('a refused id is admitted when there is room again', async () => {
    const first = await placed(books.ledger, ask('op-1', 100));
    expect(await place('op-2', 40)).toBe('exceeds_available');
    await withdraw(books.ledger, { operationKey: first.operationKey, reason: 'test' });
    expect(await place('op-2', 40)).toBe('placed');
  });

  test('the same admission answers the stored hold after the budget ran out, a price change, a freeze', async () => {
    await place('op-1', 40);
    await place('op-2', 60);
    expect(await place('op-1', 40)).toBe('exists');
    await priceRoute(books.ledger, 'fake-priced', 7n);
    expect(await place('op-1', 40)).toBe('exists');
    await setBudgetFrozen(books.ledger, {
      budgetId: 'team-a',
      isFrozen: true,
      actor: 'ana',
      reason: 'test',
    });
    const answer = await placeHold(books.ledger, ask('op-1', 40));
    expect(answer).toMatchObject({
      status: 'exists',
      snapshot: { attempts: [{ heldAmount: '40' }] },
    });
    expect(await place('op-3', 0)).toBe('frozen');
  });

  test('what was withdrawn is admitted anew at the price of that day; what was stopped stays closed', async () => {
    const first = await placed(books.ledger, ask('op-1', 10));
    await withdraw(books.ledger, { operationKey: first.operationKey, reason: 'test' });
    await priceRoute(books.ledger, 'fake-priced', 2n);
    const again = await placed(books.ledger, ask('op-1', 10));
    expect(again.attempts.map((attempt) => [attempt.phase, attempt.boundAmount])).toEqual([
      ['withdrawn', '10'],
      ['not_sent', '20'],
    ]);
    await requestCancel(books.ledger, {
      operationKey: again.operationKey,
      by: 'ana',
      isSupported: false,
    });
    const answer = await placeHold(books.ledger, ask('op-1', 10));
    expect(answer).toMatchObject({
      status: 'closed',
      snapshot: { outcome: 'stopped', cancel: 'confirmed_stopped' },
    });
  });

  test('a limit of 0 refuses everything but a route of explicit zeros, which is held at 0', async () => {
    await openBudget(books.ledger, { budgetId: 'zero', accountId: 'poor', limit: 0n });
    await priceRoute(books.ledger, 'free', 0n);
    expect(await place('op-1', 1, { account: 'poor' })).toBe('exceeds_limit');
    const free = await placed(
      books.ledger,
      ask('op-2', 1, { account: 'poor', routes: [offer('free', 1)] }),
    );
    await fence(books.ledger, free);
    await observe(books.ledger, free, charge('0', { output_tokens: 1 }));
    expect(await readBudget(books.ledger, 'zero')).toMatchObject({
      captured_amount: 0n,
      held_amount: 0n,
    });
  });

  test('no limit admits what no limit could hold, exactly', async () => {
    await openBudget(books.ledger, { budgetId: 'endless', accountId: 'rich' });
    const huge = 9_007_199_254_740_993n;
    await setPrice(books.ledger, {
      route: 'dear',
      unit: 'credit',
      rates: [
        { dimension: 'request', rateAmount: amount(huge), perCount: 1n },
        { dimension: 'input_tokens', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'output_tokens', rateAmount: amount(0n), perCount: 1n },
      ],
    });
    const snapshot = await placed(
      books.ledger,
      ask('op-1', 1, { account: 'rich', routes: [offer('dear', 1)] }),
    );
    expect(snapshot.attempts[0]?.heldAmount).toBe(huge.toString());
    expect((await readBudget(books.ledger, 'endless'))?.held_amount).toBe(huge);
  });

  test('a rate above zero without a bound is unbounded; another unit than the budget counts is refused', async () => {
    await setPrice(books.ledger, {
      route: 'imaged',
      unit: 'credit',
      rates: [
        { dimension: 'request', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'input_tokens', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'output_tokens', rateAmount: amount(0n), perCount: 1n },
        { dimension: 'images', rateAmount: amount(5n), perCount: 1n },
      ],
    });
    expect(await place('op-1', 1, { routes: [offer('imaged', 1)] })).toBe('unbounded');
    await setPrice(books.ledger, {
      route: 'dollars',
      unit: 'usd',
      rates: [{ dimension: 'request', rateAmount: amount(1n), perCount: 1n }],
    });
    expect(await place('op-2', 1, { routes: [offer('dollars', 1)] })).toBe('unpriced');
  });

  test('several budgets are charged all or none', async () => {
    const { ledger } = books;
    await createAccount(ledger, { accountId: 'member', team: 'search', organisation: 'org' });
    await createBudget(ledger, {
      budgetId: 'b-team',
      unit: 'credit',
      limitAmount: amount(50n),
      scopes: [{ kind: 'team', value: 'search' }],
    });
    await createBudget(ledger, {
      budgetId: 'a-org',
      unit: 'credit',
      limitAmount: amount(80n),
      scopes: [{ kind: 'organisation', value: 'org' }],
    });
    await addScope(ledger, { budgetId: 'team-a', kind: 'tag', value: 'night' });
    const extra = { account: 'member', scopes: { tags: ['night'] } };
    expect(await place('op-1', 30, extra)).toBe('placed');
    expect(await place('op-2', 30, extra)).toBe('exceeds_available');
    for (const budgetId of ['b-team', 'a-org', 'team-a']) {
      expect((await readBudget(ledger, budgetId))?.held_amount).toBe(30n);
    }
    const first = await placeHold(ledger, ask('op-1', 30, extra));
    if (first.status !== 'exists') throw new Error(first.status);
    await fence(ledger, first.snapshot);
    await observe(ledger, first.snapshot, charge('20'));
    for (const budgetId of ['b-team', 'a-org', 'team-a']) {
      expect(await readBudget(ledger, budgetId)).toMatchObject({
        held_amount: 0n,
        captured_amount: 20n,
      });
    }
  });

  test('a counter that was written past the functions freezes its budget', async () => {
    await place('op-1', 40);
    await books.admin.query(
      "update ledger.budget_period set held_amount = 0 where budget_id = 'team-a'",
    );
    expect(await place('op-2', 10)).toBe('frozen');
    await expect(books.expectBooksWhole()).rejects.toThrow('books are broken');
    await books.admin.query(
      "update ledger.budget_period set held_amount = 40 where budget_id = 'team-a'",
    );
  });

  test('a budget over an account that does not exist is not created', async () => {
    expect(
      await createBudget(books.ledger, {
        budgetId: 'lonely',
        unit: 'credit',
        scopes: [{ kind: 'account', value: 'nobody' }],
      }),
    ).toBe('account_not_found');
    expect(await readBudget(books.ledger, 'lonely')).toBeUndefined();
  });
});
