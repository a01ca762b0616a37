import { describe, expect, test } from 'vitest';
import type {
  Journal,
  JournalEntry,
  JournalPosting,
  JournalRefusal,
  OracleTruth,
  TrueCharge,
  TrueReport,
  TrueRequest,
} from '../../scenario-runner/judge/facts.js';
import { judge } from '../../scenario-runner/judge/oracle.js';

/** Milliseconds, with microseconds behind the point. */
const ms = (time: number) => Math.round(time * 1_000);

interface Move {
  readonly at: number;
  readonly kind: JournalPosting['kind'];
  readonly held: bigint;
  readonly captured?: bigint;
  readonly attemptKey?: string;
  readonly budgetIds?: readonly string[];
}

function journalOf(moves: readonly Move[], refusals: readonly JournalRefusal[] = []): Journal {
  const entries = moves.flatMap(({ at, held, captured = 0n, budgetIds = ['team-a'] }, index) =>
    budgetIds.flatMap((budgetId, place): JournalEntry[] => {
      const line = {
        postingId: BigInt(index),
        budgetPeriodId: BigInt(place),
        budgetId,
        at: ms(at),
      };
      return [
        { ...line, account: 'available', delta: -held - captured },
        { ...line, account: 'held', delta: held },
        ...(captured > 0n ? [{ ...line, account: 'captured' as const, delta: captured }] : []),
      ];
    }),
  );
  return {
    entries,
    postings: moves.map(({ kind, attemptKey = 'op-1' }, index) => ({
      postingId: BigInt(index),
      kind,
      attemptKey,
    })),
    attempts: ['op-1', 'op-2'].map((attemptKey) => ({ attemptKey, phase: 'in_flight' })),
    refusals,
    events: [],
    earlier: [],
  };
}

const accepted = (at: number, bill: bigint, extra: Partial<TrueRequest> = {}): TrueRequest => ({
  seq: 1,
  key: 'op-1',
  outcome: 'accepted',
  receivedAt: ms(at),
  decidedAt: ms(at),
  bill,
  isRunning: false,
  answered: null,
  ...extra,
});

const charged = (at: number, total: bigint, cause: TrueCharge['cause'] = 'finish'): TrueCharge => ({
  seq: 1,
  key: 'op-1',
  at: ms(at),
  total,
  cause,
});

function truthOf(
  requests: TrueRequest[],
  charges: TrueCharge[] = [],
  reports: TrueReport[] = [],
): OracleTruth {
  return { requests, charges, reports };
}

function falseFree(truth: OracleTruth, journal: Journal, statedExcess = 0n): readonly string[] {
  return judge({ truth, journal, statedExcess }).checks[0]?.detail ?? [];
}

const placed: Move = { at: 10.7, kind: 'hold_placed', held: 40n };
const returned = (at: number): Move => ({ at, kind: 'hold_returned', held: -40n });
const captured = (at: number, total: bigint): Move => ({
  at,
  kind: 'hold_captured',
  held: -40n,
  captured: total,
});

describe('ties', () => {
  test('work that is stamped in the millisecond of its hold, and cut off before it, came after it', () => {
    expect(falseFree(truthOf([accepted(10, 40n)]), journalOf([placed]))).toEqual([]);
  });

  test('work that is stamped more than 2 ms before its hold came before it, and on what it is held on', () => {
    const work = (at: number) => truthOf([accepted(at, 40n)]);
    const journal = journalOf([placed]);
    expect(falseFree(work(8.8), journal)).toEqual([]);
    expect(falseFree(work(8), journal)).toEqual([
      '1970-01-01T00:00:00.010Z attempt op-1: of budget "team-a" the provider has charged or can ' +
        'still charge 40, and captured + held is 0',
    ]);
    const other = { ...placed, at: 1, attemptKey: 'op-2', budgetIds: ['team-b'] };
    expect(falseFree(work(8), journalOf([other]))).toEqual([]);
  });

  test('a hold that goes back in the millisecond in which the charge became 0 went back after it', () => {
    const truth = truthOf([accepted(11, 0n)], [charged(12, 0n)]);
    expect(falseFree(truth, journalOf([placed, returned(12.4)]))).toEqual([]);
  });

  test('a charge that is lower than before counts from its stamp on, and not earlier', () => {
    const truth = truthOf(
      [accepted(11, 10n)],
      [charged(11, 40n, 'accept'), charged(20, 10n, 'finish')],
    );
    expect(falseFree(truth, journalOf([placed, captured(20.1, 10n)]))).toEqual([]);
    expect(falseFree(truth, journalOf([placed, captured(19.9, 10n)]))).toHaveLength(1);
  });

  test('work that begins and is charged less within 1 ms, and is booked in the next, is no fault', () => {
    const truth = truthOf([accepted(11, 10n)], [charged(11, 40n, 'accept'), charged(12, 10n)]);
    expect(falseFree(truth, journalOf([placed, captured(12.3, 10n)]))).toEqual([]);
  });

  test('a hold that is gone for 3 ms under running work is told, with time, budget and both numbers', () => {
    const journal = journalOf([placed, returned(30), { at: 33, kind: 'hold_placed', held: 40n }]);
    expect(falseFree(truthOf([accepted(20, 40n)]), journal)).toEqual([
      '1970-01-01T00:00:00.030Z attempt op-1: of budget "team-a" the provider has charged or can ' +
        'still charge 40, and captured + held is 0',
    ]);
  });
});

describe('false-free', () => {
  test('compares every budget that an attempt is on', () => {
    const budgetIds = ['team-a', 'team-b'];
    const journal = journalOf([
      { ...placed, budgetIds },
      { ...returned(30), budgetIds },
    ]);
    expect(falseFree(truthOf([accepted(20, 40n)]), journal)).toHaveLength(2);
  });

  test('one attempt is not covered by the hold of another on the same budget', () => {
    const journal = journalOf([placed, { ...placed, attemptKey: 'op-2' }, returned(30)]);
    const both = [accepted(20, 40n), accepted(20, 40n, { seq: 2, key: 'op-2' })];
    expect(falseFree(truthOf(both), journal)).toHaveLength(1);
  });

  test('what was captured too low is told, and what exceeds the bound is an excess and no more', () => {
    const truth = truthOf([accepted(20, 60n)], [charged(25, 60n)]);
    expect(falseFree(truth, journalOf([placed, captured(30, 60n)]), 20n)).toEqual([]);
    expect(falseFree(truth, journalOf([placed, captured(30, 39n)]), 20n)).toHaveLength(1);
    const raised: Move = { at: 26, kind: 'hold_raised', held: 20n };
    expect(falseFree(truth, journalOf([placed, raised]), 20n)).toEqual([]);
    const { excesses } = judge({ truth, journal: journalOf([placed]), statedExcess: 0n });
    expect(excesses).toEqual([{ attemptKey: 'op-1', amount: 20n, why: 'above_bound' }]);
  });
});

test('a hold that goes and comes back does not double what its attempt may cost', () => {
  const journal = journalOf([placed, returned(30), { ...placed, at: 40 }, captured(50, 40n)]);
  const truth = truthOf([accepted(20, 60n)], [charged(25, 60n)]);
  expect(falseFree(truth, journal, 20n)).toEqual([expect.stringContaining('held is 0')]);
});

describe('a job that is charged by the tick', () => {
  const job = (isRunning: boolean, bill: bigint) => accepted(11, bill, { isRunning });
  const ticks = [20, 30, 40].map((at, index) => charged(at, BigInt(index + 1) * 10n, 'tick'));

  test('is covered by its whole bound while it runs, whatever it was charged so far', () => {
    const truth = truthOf([job(true, 40n)], ticks.slice(0, 2));
    expect(falseFree(truth, journalOf([placed]))).toEqual([]);
    expect(falseFree(truth, journalOf([placed, captured(35, 20n)]))).toEqual([
      '1970-01-01T00:00:00.035Z attempt op-1: of budget "team-a" the provider has charged or can ' +
        'still charge 40, and captured + held is 20',
    ]);
    expect(falseFree(truthOf([job(true, 40n)]), journalOf([placed, returned(35)]))).toHaveLength(1);
  });

  test('that has ended costs what it came to, and a capture before its last tick is told until then', () => {
    const truth = truthOf([job(false, 30n)], ticks);
    expect(falseFree(truth, journalOf([placed, captured(50, 30n)]))).toEqual([]);
    expect(falseFree(truth, journalOf([placed, captured(35, 20n)]))).toEqual([
      expect.stringContaining('00.035Z attempt op-1'),
      expect.stringContaining('00.042Z attempt op-1'),
    ]);
  });

  test('that is charged above its bound is an excess, and no more', () => {
    const truth = truthOf([job(false, 50n)], [...ticks, charged(50, 50n, 'tick')]);
    expect(falseFree(truth, journalOf([placed, captured(60, 50n)]), 10n)).toEqual([]);
  });
});

describe('known attempts', () => {
  test('a key is executed once; a replay is a question', () => {
    const detailOf = (outcome: TrueRequest['outcome']) =>
      judge({
        truth: truthOf([accepted(20, 1n), accepted(21, 1n, { seq: 2, outcome })]),
        journal: journalOf([placed]),
        statedExcess: 0n,
      }).checks[2]?.detail;
    expect(detailOf('replayed')).toEqual([]);
    expect(detailOf('accepted')).toEqual(['1970-01-01T00:00:00.021Z key op-1: executed again']);
  });
});

describe('false-deny', () => {
  const refusal: JournalRefusal = {
    operationKey: 'refused',
    reason: 'exceeds_available',
    budgetId: 'team-a',
    at: ms(10_000),
    needed: 70n,
    available: 60n,
    limit: 100n,
  };
  const denials = (truth: OracleTruth, moves: readonly Move[] = [placed]) =>
    judge({ truth, journal: journalOf(moves, [refusal]), statedExcess: 0n }).checks[1]?.detail;
  const report = (at: number, charge: bigint | null, status = 'completed'): TrueReport => ({
    key: 'op-1',
    at: ms(at),
    status,
    charge,
    final: true,
  });
  const told = (...reports: TrueReport[]) => truthOf([accepted(20, 10n)], [], reports);
  const room = (amount: number): unknown[] => [
    expect.stringContaining(`there was room for ${amount}`),
  ];

  test('a final charge counts from 3 s after it was received completely; until then the bound does', () => {
    expect(denials(told(report(7_000, 10n)))).toEqual(room(90));
    expect(denials(told(report(7_001, 10n)))).toEqual([]);
  });

  test('what is still running or says no charge keeps the bound', () => {
    expect(denials(told(report(1_000, 10n, 'running')))).toEqual([]);
    expect(denials(told(report(1_000, null)))).toEqual([]);
  });

  test('what was cancelled counts with its charge, and what was not said to be final keeps the bound', () => {
    expect(denials(told(report(1_000, 10n, 'cancelled')))).toEqual(room(90));
    expect(denials(told({ ...report(1_000, 10n), final: false }))).toEqual([]);
  });

  test('of several reports the newest that was known stands', () => {
    expect(denials(told(report(1_000, 10n), report(2_000, 35n)))).toEqual([]);
    expect(denials(told(report(1_000, 10n), report(2_000, null)))).toEqual(room(90));
    expect(denials(told(report(1_000, 35n), report(2_000, 10n), report(9_000, 35n)))).toEqual(
      room(90),
    );
  });

  test('a refusal before work frees the bound when its answer is complete', () => {
    const refused = (at: number, status = 503) =>
      truthOf([
        accepted(20, 0n, { outcome: 'refused', bill: null, answered: { at: ms(at), status } }),
      ]);
    expect(denials(refused(6_000))).toEqual(room(100));
    expect(denials(refused(8_000))).toEqual([]);
    expect(denials(refused(6_000, 429))).toEqual([]);
    const dropped = accepted(30, 0n, { seq: 2, outcome: 'dropped_before_reading', bill: null });
    expect(denials(truthOf([...refused(6_000).requests, dropped]))).toEqual([]);
  });

  test('a returned hold frees the bound unless the provider works under that key', () => {
    expect(denials(truthOf([]), [placed, returned(6_000)])).toEqual(room(100));
    expect(denials(truthOf([]), [placed, returned(8_000)])).toEqual([]);
    expect(denials(truthOf([accepted(20, 40n)]), [placed, returned(6_000)])).toEqual([]);
  });

  test('a hold that was placed after the refusal takes no room of it', () => {
    expect(denials(truthOf([]), [{ ...placed, at: 10_001 }])).toEqual(room(100));
  });
});

describe('a hold above the limit', () => {
  const withLimit = (limit: bigint): Journal => {
    const journal = journalOf([placed, { ...placed, at: 11, attemptKey: 'op-2' }]);
    const line = { postingId: 99n, budgetPeriodId: 0n, budgetId: 'team-a', at: ms(1) };
    return {
      ...journal,
      entries: [{ ...line, account: 'limit', delta: -limit }, ...journal.entries],
      postings: [{ postingId: 99n, kind: 'limit_set', attemptKey: null }, ...journal.postings],
    };
  };

  test('is false-free, although nothing was charged yet', () => {
    expect(falseFree(truthOf([]), withLimit(79n))).toEqual([
      expect.stringContaining(
        'admitted above the limit of budget "team-a": captured + held is 80 of 79',
      ),
    ]);
  });

  test('is none when the two holds are exactly the limit', () => {
    expect(falseFree(truthOf([]), withLimit(80n))).toEqual([]);
  });
});
