import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { placeHold } from '../../ledger/admit.js';
import { withdraw } from '../../ledger/fence.js';
import { judge, type OracleVerdict } from '../../scenario-runner/judge/oracle.js';
import { readJournal } from '../../scenario-runner/judge/read-journal.js';
import { readTruth } from '../../scenario-runner/judge/read-truth.js';
import { createSimulator, type Simulator } from '../../simulator/create-simulator.js';
import { createTestLedger, type TestLedger } from '../support/ledger-database.js';
import {
  ask,
  charge,
  fence,
  observe,
  openBudget,
  placed,
  priceRoute,
  statusOf,
} from '../support/ledger-facts.js';

let books: TestLedger;
let simulator: Simulator;
let url: string;

beforeEach(async () => {
  books = await createTestLedger('oracle');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme', limit: 100n });
  await priceRoute(books.ledger, 'fake-priced', 1n);
  simulator = createSimulator();
  ({ url } = await simulator.listen());
});
afterEach(async () => {
  await simulator.close();
  await books.close();
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const attemptKey = (snapshot: OperationSnapshot) => `${snapshot.operationKey}-1`;

async function send(key: string, maxTokens: number, simulate: object = {}): Promise<unknown> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer any',
      'content-type': 'application/json',
      'idempotency-key': key,
      'x-simulate': JSON.stringify(simulate),
    },
    body: JSON.stringify({
      model: 'fake-priced',
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: 'Count.' }],
    }),
  });
  return response.json();
}

const control = (word: string, body: object) =>
  fetch(`${url}/control/${word}`, { method: 'POST', body: JSON.stringify(body) });

async function sent(operation: string, tokens = 40) {
  const snapshot = await placed(books.ledger, ask(operation, tokens));
  const claim = randomUUID();
  await fence(books.ledger, snapshot, claim);
  return { snapshot, claim };
}

/** A call as it should be: held, sent, answered, booked. */
async function called(
  operation: string,
  tokens: number,
  simulate: object & { charge?: string } = {},
) {
  const { snapshot, claim } = await sent(operation, tokens);
  await send(attemptKey(snapshot), tokens, simulate);
  await observe(books.ledger, snapshot, charge(simulate.charge ?? String(tokens)), { claim });
  return snapshot;
}

/** A refusal that no function of the ledger would store. */
const refuse = (available: string) =>
  books.admin.query(
    `insert into ledger.refusal (operation_key, reason, budget_id, account_id, operation_id, route, numbers,
                                 first_at, last_at)
     values (repeat('0', 32), 'exceeds_available', 'team-a', 'acme', 'refused', 'fake-priced', $1, now(), now())`,
    [{ neededAmount: '40', availableAmount: available, limitAmount: '100', heldAmount: '40' }],
  );

interface RunStart {
  readonly since?: bigint;
  readonly fromSeq?: number;
}

async function verdict(
  statedExcess = 0n,
  { since, fromSeq }: RunStart = {},
): Promise<OracleVerdict> {
  const client = await books.admin.connect();
  try {
    const journal = await readJournal(client, since === undefined ? {} : { since });
    const truth = readTruth(await (await fetch(`${url}/truth`)).json(), fromSeq);
    return judge({ truth, journal, statedExcess });
  } finally {
    client.release();
  }
}

const failed = ({ checks }: OracleVerdict) =>
  checks.flatMap((each) => (each.ok ? [] : [each.name]));
const detailOf = ({ checks }: OracleVerdict) => checks.flatMap((each) => each.detail).join('\n');

describe('a run without fault', () => {
  test('passes every check, and says how many instants it compared', async () => {
    await called('first', 40);
    await called('second', 30, { charge: '12' });
    const { snapshot } = await sent('late', 20);
    const answer = send(attemptKey(snapshot), 20, { answer: 'late', until_released: true });
    expect(statusOf(await placeHold(books.ledger, ask('too much', 90)))).toBe('exceeds_available');
    await control('release', { all: true });
    await answer;
    await observe(books.ledger, snapshot, charge('20'));
    const withdrawn = await placed(books.ledger, ask('withdrawn', 5));
    await withdraw(books.ledger, { operationKey: withdrawn.operationKey, reason: 'test' });
    const result = await verdict();
    expect(detailOf(result)).toBe('');
    expect(failed(result)).toEqual([]);
    expect(result.excesses).toEqual([]);
    expect(result.instantCount).toBeGreaterThan(8);
  });

  test('fails when not one instant was compared', async () => {
    const result = await verdict();
    expect(result.instantCount).toBe(0);
    expect(failed(result)).toEqual(['false_free']);
  });

  test('is judged by itself after an earlier run over the same ledger and provider', async () => {
    await refuse('60');
    await called('earlier', 40);
    const open = await sent('still open', 20);
    await send('a key of the earlier run', 7);
    const [row] = (
      await books.admin.query<{ id: string }>('select max(entry_id)::text as id from ledger.entry')
    ).rows;
    const start = { since: BigInt(row?.id ?? '0'), fromSeq: 2 };
    await observe(books.ledger, open.snapshot, charge('15'));
    await called('later', 30);
    expect(statusOf(await placeHold(books.ledger, ask('too much', 40)))).toBe('exceeds_available');
    const result = await verdict(0n, start);
    expect(detailOf(result)).toBe('');
    expect(failed(result)).toEqual([]);
    expect(result.instantCount).toBe(3);
    expect(failed(await verdict())).toEqual(['false_deny', 'known_attempts']);
  });
});

describe('planted faults', () => {
  /** What no function of the ledger does: moves a hold past the attempt that it belongs to. */
  const move = (kind: string, { operationKey }: OperationSnapshot, held: number) =>
    books.admin.query(
      `select ledger.post(
         ledger.open_posting($1, $2, 1, ledger.store_evidence('{"source": "operator", "reference": "planted"}')),
         (select budget_period_id from ledger.budget_period), 0, $3, 0)`,
      [kind, operationKey, held],
    );

  test.each(['hold_placed', 'hold_raised'])(
    'a hold that is freed for 50 ms and taken back with %s is a false free',
    async (kind) => {
      const { snapshot, claim } = await sent('freed');
      const answer = send(attemptKey(snapshot), 40, { answer: 'late', until_released: true });
      await expect.poll(async () => (await verdict()).instantCount).toBe(2);
      expect(failed(await verdict())).toEqual([]);
      await move('hold_returned', snapshot, -40);
      await pause(50);
      await move(kind, snapshot, 40);
      await control('release', { all: true });
      await answer;
      await observe(books.ledger, snapshot, charge('40'), { claim });
      const result = await verdict();
      expect(failed(result)).toEqual(['false_free']);
      expect(result.checks[0]?.detail).toEqual([
        expect.stringMatching(/budget "team-a" .* still charge 40, and captured \+ held is 0/),
      ]);
      expect(result.excesses).toEqual([]);
    },
  );

  test('a send after a withdrawal is unknown work, also where the provider refused it', async () => {
    await called('clean', 10);
    const snapshot = await placed(books.ledger, ask('withdrawn', 40));
    await withdraw(books.ledger, { operationKey: snapshot.operationKey, reason: 'test' });
    await pause(5);
    await send(attemptKey(snapshot), 40, { status: 503 });
    const refused = await verdict();
    expect(failed(refused)).toEqual(['known_attempts']);
    expect(detailOf(refused)).toContain('sent after it was withdrawn');
    await send(attemptKey(snapshot), 40);
    expect(failed(await verdict())).toEqual(['false_free', 'known_attempts']);
  });

  test.each([
    ['by its own numbers', '60', 'its own available was 60'],
    ['by what was known', '10', 'there was room for 90'],
  ])('a refusal with room %s is a false denial', async (_, available, sentence) => {
    await called('clean', 10);
    await refuse(available);
    const result = await verdict();
    expect(failed(result)).toEqual(['false_deny']);
    expect(detailOf(result)).toContain(sentence);
  });

  test('a charge under an unknown key is unknown work', async () => {
    await called('clean', 10);
    await send('nobody-1', 5);
    const result = await verdict();
    expect(failed(result)).toEqual(['known_attempts']);
    expect(detailOf(result)).toContain('key nobody-1');
  });
});

describe('excesses', () => {
  test('a charge above the bound passes with exactly its amount stated, and with no other', async () => {
    const snapshot = await called('dear', 40, { charge: '60' });
    const result = await verdict();
    expect(failed(result)).toEqual(['false_free']);
    expect(detailOf(result)).toContain(
      `attempt ${attemptKey(snapshot)}: 20 charged above its bound`,
    );
    expect(failed(await verdict(19n))).toEqual(['false_free']);
    expect(failed(await verdict(21n))).toEqual(['false_free']);
    expect(failed(await verdict(20n))).toEqual([]);
  });

  test('a correction upwards after a final is one, by its difference', async () => {
    const snapshot = await called('corrected', 40);
    await control('correct', { key: attemptKey(snapshot), charge: '45' });
    expect(failed(await verdict())).toEqual(['false_free']);
    const result = await verdict(5n);
    expect(failed(result)).toEqual([]);
    expect(result.excesses).toEqual([
      { attemptKey: attemptKey(snapshot), amount: 5n, why: 'corrected' },
    ]);
  });
});

test('a refusal that is repeated carries the real time of the last one, whatever the moved clock says', async () => {
  await placeHold(books.ledger, ask('too much', 200));
  await books.admin.query(`select ledger.move_clock('1 year'::interval)`);
  const before = Date.now() * 1_000;
  await placeHold(books.ledger, ask('too much', 200));
  const client = await books.admin.connect();
  const { refusals } = await readJournal(client);
  client.release();
  expect(refusals).toHaveLength(1);
  expect(refusals[0]?.at).toBeGreaterThanOrEqual(before);
  expect(refusals[0]?.at).toBeLessThanOrEqual((Date.now() + 1) * 1_000);
});
