import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { amount } from '../../domain/money.js';
import { addScope, createAccount, createBudget } from '../../ledger/administer.js';
import { placeHold } from '../../ledger/admit.js';
import { endAsk, withdraw } from '../../ledger/fence.js';
import { readBudget, readOperation } from '../../ledger/read.js';
import { recordChargeReport } from '../../ledger/record.js';
import { createTestLedger, type TestLedger } from '../support/ledger-database.js';
import { ask, fence, openBudget, placed, priceRoute, statusOf } from '../support/ledger-facts.js';

const CALLER = fileURLToPath(new URL('../support/race-caller.mjs', import.meta.url));
let books: TestLedger;

beforeEach(async () => {
  books = await createTestLedger('races');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
});
afterEach(async () => {
  await books.expectBooksWhole();
  await books.close();
});

const countOf = (answers: readonly string[]): Record<string, number> =>
  Object.fromEntries(
    [...new Set(answers)]
      .sort()
      .map((one) => [one, answers.filter((other) => other === one).length]),
  );

async function startCaller(
  first: number,
  count: number,
): Promise<{ child: ChildProcess; go: () => Promise<string[]> }> {
  const child = spawn(
    process.execPath,
    [CALLER, books.databaseUrl, String(first), String(count), JSON.stringify(ask('', 40))],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  while (!output.includes('ready')) await once(child.stdout, 'data');
  return {
    child,
    async go() {
      child.stdin.write('go\n');
      await once(child, 'close');
      return JSON.parse(output.split('\n')[1] ?? '[]') as string[];
    },
  };
}

describe('P1: races', () => {
  test('200 callers in 4 processes for a budget that fits 2, created a moment before: exactly 2 are admitted', async () => {
    await openBudget(books.ledger, { budgetId: 'fresh', accountId: 'racers', limit: 100n });
    const callers = await Promise.all([0, 50, 100, 150].map((first) => startCaller(first, 50)));
    const answers = (await Promise.all(callers.map((caller) => caller.go()))).flat();
    expect(countOf(answers)).toEqual({ exceeds_available: 198, placed: 2 });
    expect(await readBudget(books.ledger, 'team-a')).toMatchObject({
      held_amount: 80n,
      available_amount: 20n,
    });
  });

  test('two budgets asked for in opposite order: all or none, and nobody waits for ever', async () => {
    const { ledger } = books;
    await createBudget(ledger, {
      budgetId: 'z-budget',
      unit: 'credit',
      limitAmount: amount(1_000n),
      scopes: [],
    });
    await addScope(ledger, { budgetId: 'z-budget', kind: 'account', value: 'forth' });
    await addScope(ledger, { budgetId: 'team-a', kind: 'account', value: 'forth' });
    await addScope(ledger, { budgetId: 'team-a', kind: 'account', value: 'back' });
    await addScope(ledger, { budgetId: 'z-budget', kind: 'account', value: 'back' });
    await createAccount(ledger, { accountId: 'forth' });
    await createAccount(ledger, { accountId: 'back' });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        placeHold(ledger, ask(`op-${index}`, 10, { account: index % 2 === 0 ? 'forth' : 'back' })),
      ),
    );
    expect(countOf(answers.map(statusOf))).toEqual({ exceeds_available: 30, placed: 10 });
    expect((await readBudget(ledger, 'team-a'))?.held_amount).toBe(100n);
    expect((await readBudget(ledger, 'z-budget'))?.held_amount).toBe(100n);
  });

  test('P4: of twenty senders one takes the fence', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => fence(books.ledger, snapshot)),
    );
    expect(countOf(answers.map((answer) => answer.status))).toEqual({
      taken: 1,
      taken_by_other: 19,
    });
  });

  test('P4: a withdrawal that races the fence: one of them wins, and a withdrawn attempt was never fenced', async () => {
    for (let round = 0; round < 25; round += 1) {
      const snapshot = await placed(books.ledger, ask(`round-${round}`, 1));
      const [fenced, withdrawn] = await Promise.all([
        fence(books.ledger, snapshot),
        withdraw(books.ledger, { operationKey: snapshot.operationKey, reason: 'race' }),
      ]);
      expect([fenced.status, withdrawn.status]).toSatisfy(
        ([one, other]: string[]) =>
          (one === 'taken' && other === 'nothing_unsent') ||
          (one === 'refused' && other === 'withdrawn'),
      );
    }
  });

  test('a placement that arrives after its ask has ended places nothing, in any interleaving', async () => {
    const end = (operation: string) =>
      endAsk(books.ledger, {
        account: 'acme',
        operation,
        ask: 'ask-1',
        reason: 'ledger_unavailable',
      });
    await end('late');
    expect(statusOf(await placeHold(books.ledger, ask('late', 1)))).toBe('ask_ended');
    for (let round = 0; round < 25; round += 1) {
      const operation = `ended-${round}`;
      await Promise.all([placeHold(books.ledger, ask(operation, 1)), end(operation)]);
      const snapshot = await readOperation(books.ledger, {
        accountId: 'acme',
        operationId: operation,
      });
      expect(snapshot?.attempts[0]?.phase ?? 'withdrawn').toBe('withdrawn');
      if (snapshot !== undefined)
        expect((await fence(books.ledger, snapshot)).status).toBe('refused');
    }
    expect(statusOf(await placeHold(books.ledger, ask('late', 1, { ask: 'ask-2' })))).toBe(
      'placed',
    );
  });

  test('P5: the same report from eight sides at once is captured once', async () => {
    const snapshot = await placed(books.ledger, ask('op-1', 40));
    await fence(books.ledger, snapshot, randomUUID());
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        recordChargeReport(books.ledger, {
          provider: 'metered',
          attemptKey: snapshot.attempts[0]?.attemptKey ?? '',
          report: {
            basis: 'final',
            amount: '40' as never,
            evidence: { source: 'webhook', reference: 'w-1' },
          },
        }),
      ),
    );
    expect(countOf(answers.map((answer) => answer.status))).toEqual({ captured: 1, duplicate: 7 });
    expect(await readBudget(books.ledger, 'team-a')).toMatchObject({
      captured_amount: 40n,
      held_amount: 0n,
    });
  });
});
