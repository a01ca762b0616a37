import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AttemptFacts, decide } from '../../domain/decide.js';
import { amount, decodeAmount } from '../../domain/money.js';
import type { ObservationJson, Observation } from '../../domain/observation.js';
import {
  ATTEMPT_PHASES,
  computeOperationState,
  isEnded,
  TRANSITIONS,
} from '../../domain/operation.js';
import { costRoundedUp } from '../../domain/price-book.js';
import { readBudget } from '../../ledger/read.js';
import { setPrice } from '../../ledger/administer.js';
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
} from '../support/ledger-facts.js';

let books: TestLedger;
let operationCount = 0;

beforeAll(async () => {
  books = await createTestLedger('twins');
  await openBudget(books.ledger, { budgetId: 'team-a', accountId: 'acme' });
  await priceRoute(books.ledger, 'fake-priced', 1n);
  await priceRoute(books.ledger, 'fake-fallback', 2n);
});
afterAll(async () => {
  await books.expectBooksWhole();
  await books.close();
});

const OBSERVATIONS: readonly ObservationJson[] = [
  charge('0', { output_tokens: 0 }),
  charge('0'),
  charge('30'),
  charge('55'),
  floor('20'),
  floor('50'),
  { ...floor('20'), execution: 'running' } as ObservationJson,
  { ...floor('30'), execution: 'completed' } as ObservationJson,
  { ...silence, execution: 'cancelled' } as ObservationJson,
  silence,
  running,
  { ...running, status: 'completed' } as ObservationJson,
  rejected,
];

describe('the rules live twice', () => {
  test('the ledger accepts exactly the transitions the domain knows', async () => {
    const { rows } = await books.admin.query<{ pair: string }>(
      "select from_state || ' > ' || to_state as pair from ledger.legal_transition",
    );
    const known = Object.entries(TRANSITIONS).flatMap(([from, tos]) =>
      tos.map((to) => `${from} > ${to}`),
    );
    expect(rows.map((row) => row.pair).sort()).toEqual(known.sort());
  });

  test('the ledger computes the state of every set of up to three phases as the domain does', async () => {
    const sets = ATTEMPT_PHASES.flatMap((one) => [
      [one],
      ...ATTEMPT_PHASES.flatMap((two) => [
        [one, two],
        ...ATTEMPT_PHASES.map((three) => [one, two, three]),
      ]),
    ]);
    const { rows } = await books.admin.query<{ body: string }>(
      "select prosrc as body from pg_proc where proname = 'compute_state'",
    );
    const body = (rows[0]?.body ?? '').replace(
      'from ledger.attempt where operation_key = p_operation_key',
      'from unnest(p_phases) as phase',
    );
    expect(body).toContain('unnest(p_phases)');
    await books.admin.query(
      `create function public.state_of(p_phases text[]) returns text language plpgsql as $$${body}$$`,
    );
    for (const phases of sets) {
      const { rows: states } = await books.admin.query<{ state: string }>({
        text: 'select public.state_of($1) as state',
        values: [phases],
      });
      expect([phases, states[0]?.state]).toEqual([phases, computeOperationState(phases)]);
    }
  });

  test('the ledger rounds the cost of any usage up as the domain does', async () => {
    const rate = fc.record({
      rate: fc.bigInt(0n, 10n ** 11n),
      per: fc.constantFrom(1n, 1_000n, 1_000_000n),
    });
    const count = fc.nat(10_000_000);
    await fc.assert(
      fc.asyncProperty(
        rate,
        rate,
        fc.tuple(count, count),
        async (input, output, [inputs, outputs]) => {
          const rates = [
            { dimension: 'input_tokens', rateAmount: amount(input.rate), perCount: input.per },
            { dimension: 'output_tokens', rateAmount: amount(output.rate), perCount: output.per },
          ];
          const route = `priced-${(operationCount += 1)}`;
          await setPrice(books.ledger, { route, unit: 'credit', rates });
          const usage = { input_tokens: inputs, output_tokens: outputs };
          const { rows } = await books.admin.query<{ amount: string }>(
            'select amount::text from ledger.cost_of(ledger.price_version_of($1), $2::jsonb)',
            [route, JSON.stringify(usage)],
          );
          expect(rows[0]?.amount).toBe(
            (costRoundedUp(usage, rates) as { amount: bigint }).amount.toString(),
          );
        },
      ),
      { numRuns: 100, seed: 7 },
    );
  });

  test('P3: any sequence of observations does to an attempt what `decide` says', async () => {
    const sequence = fc.array(fc.constantFrom(...OBSERVATIONS), { minLength: 1, maxLength: 7 });
    await fc.assert(
      fc.asyncProperty(sequence, async (observations) => {
        const claim = randomUUID();
        const snapshot = await placed(books.ledger, ask(`twin-${(operationCount += 1)}`, 40));
        await fence(books.ledger, snapshot, claim);
        let facts: AttemptFacts = {
          phase: 'sending',
          heldAmount: amount(40n),
          floorAmount: amount(0n),
          hasTrace: false,
          isFreeRoute: false,
        };
        for (const seen of observations) {
          const answer = await observe(books.ledger, snapshot, seen, { claim });
          facts = evolve(facts, seen);
          const attempt = answer.snapshot?.attempts[0];
          expect([
            seen,
            attempt?.phase,
            attempt?.heldAmount,
            attempt?.floorAmount,
            attempt?.chargedAmount,
          ]).toEqual([
            seen,
            facts.phase,
            isEnded(facts.phase) ? '0' : facts.heldAmount.toString(),
            facts.floorAmount.toString(),
            facts.capturedAmount?.toString() ?? null,
          ]);
        }
      }),
      { numRuns: 150, seed: 11 },
    );
  });

  test('P3: over several attempts no hold ends without its own evidence and nothing is captured twice', async () => {
    const step = fc.tuple(fc.nat(2), fc.constantFrom(...OBSERVATIONS));
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('wait', 'allow'),
        fc.constantFrom('each', 'upfront'),
        fc.array(step, { minLength: 2, maxLength: 12 }),
        async (policy, fallbackHold, steps) => {
          const routes = [offer('fake-priced', 40), offer('fake-fallback', 40)];
          const before = (await readBudget(books.ledger, 'team-a'))?.captured_amount ?? 0n;
          const request = ask(`several-${(operationCount += 1)}`, 40, {
            chain: {
              routes,
              fallbackWhileUnknown: policy,
              fallbackHold,
              sameRouteAttempts: 1,
            },
          });
          let snapshot = await placed(books.ledger, request);
          const claims = new Map<number, string>();
          const ends = new Map<number, ObservationJson>();
          for (const [which, seen] of steps) {
            const newest = snapshot.attempts.at(-1);
            if (newest?.phase === 'not_sent') {
              const claim = randomUUID();
              if ((await fence(books.ledger, snapshot, claim)).status === 'taken')
                claims.set(newest.attemptNo, claim);
            }
            const attemptNo = 1 + (which % snapshot.attempts.length);
            const claim = claims.get(attemptNo);
            if (claim === undefined && seen.kind === 'not_accepted') continue;
            const open = !isEnded(snapshot.attempts[attemptNo - 1]?.phase ?? 'charged');
            const answer = await observe(books.ledger, snapshot, seen, {
              attemptNo,
              ...(claim !== undefined && { claim }),
              ...(snapshot.attempts.length < 3 && { next: routes[1] as (typeof routes)[0] }),
            });
            snapshot = answer.snapshot ?? snapshot;
            if (open && isEnded(snapshot.attempts[attemptNo - 1]?.phase ?? 'unknown'))
              ends.set(attemptNo, seen);
          }
          let captured = 0n;
          for (const attempt of snapshot.attempts) {
            const end = ends.get(attempt.attemptNo);
            expect(isEnded(attempt.phase)).toBe(end !== undefined);
            if (attempt.phase === 'charged') captured += BigInt(attempt.chargedAmount ?? '0');
            if (end !== undefined) expect(['charge', 'not_accepted']).toContain(end.kind);
          }
          expect((await readBudget(books.ledger, 'team-a'))?.captured_amount).toBe(
            before + captured,
          );
        },
      ),
      { numRuns: 60, seed: 13 },
    );
  });
});

function evolve(facts: AttemptFacts, seen: ObservationJson): AttemptFacts {
  const observation = (
    seen.kind === 'charge' && seen.amount !== undefined
      ? { ...seen, amount: decodeAmount(seen.amount) }
      : seen
  ) as Observation;
  const priced = observation.kind === 'charge' ? observation.amount : undefined;
  const decision = decide(facts, observation, priced);
  const shows =
    observation.kind === 'charge' ||
    (observation.kind === 'status' && observation.status !== 'unknown') ||
    (observation.kind === 'no_answer' && observation.execution !== undefined);
  const traced = { ...facts, hasTrace: facts.hasTrace || shows };
  switch (decision.action) {
    case 'capture':
      return { ...traced, phase: 'charged', capturedAmount: decision.amount };
    case 'end_free':
      return { ...traced, phase: 'free' };
    case 'raise_floor':
      return {
        ...traced,
        phase: decision.phase,
        floorAmount: decision.floor,
        heldAmount: decision.heldAmount,
      };
    case 'retain':
      return {
        ...traced,
        phase: decision.phase,
        hasTrace: traced.hasTrace || decision.phase === 'in_flight',
      };
    case 'duplicate':
    case 'note_after_end':
      return traced;
  }
}
