// What can be expected of one call, word by word, each with where it is read.

import type { Unit } from '../../domain/money.js';
import { newestAttempt } from '../../domain/next-step.js';
import type { AttemptSnapshot, OperationSnapshot } from '../../domain/snapshot.js';
import { readTimeline } from '../../ledger/read.js';
import type { CallFigures } from '../language/expect.js';
import type { FigureText } from '../language/words.js';
import { createSupervisors } from '../../client/supervisors.js';
import { reportStop } from '../../domain/stop.js';
import { sayAmount, toAmount } from '../play/numbers.js';
import { callOf, check, operationOf, type Play, type PlayedCall } from '../play/play.js';

const READ_OPERATION = 'ledger.read_operation';
const TRUTH = 'GET /truth';
const TEMPORAL = 'Temporal';
/** How long a figure at Temporal may be behind the ledger, in milliseconds. */
const SHOWN_LIMIT_MS = 3_000;

interface Seen {
  readonly name: string;
  readonly expected: string;
  readonly actual: string;
  readonly ok?: boolean;
  readonly source: string;
}

interface Looking {
  readonly play: Play;
  readonly call: PlayedCall;
  readonly snapshot: OperationSnapshot | undefined;
  readonly unit: Unit;
}

type Word = keyof CallFigures;
type Reader<W extends Word> = (
  looking: Looking,
  wanted: NonNullable<CallFigures[W]>,
) => Seen | readonly Seen[] | Promise<Seen | readonly Seen[]>;

/** A text that stands in the snapshot as it is. */
const plain =
  (
    name: Word,
    read: (snapshot: OperationSnapshot, newest: AttemptSnapshot) => string,
    none = 'none',
  ) =>
  ({ snapshot }: Looking, wanted: string | number | readonly string[]): Seen => ({
    name,
    expected: wanted.toString(),
    actual: snapshot === undefined ? none : read(snapshot, newestAttempt(snapshot)),
    source: READ_OPERATION,
  });

const money =
  (name: Word, read: (attempts: readonly AttemptSnapshot[]) => bigint | undefined) =>
  ({ play, snapshot, unit }: Looking, wanted: FigureText): Seen => {
    const actual = read(snapshot?.attempts ?? []);
    return {
      name,
      expected:
        wanted === 'unknown'
          ? wanted
          : sayAmount(toAmount(wanted, unit, play.scenario.numbers), unit),
      actual: actual === undefined ? 'unknown' : sayAmount(actual, unit),
      source: READ_OPERATION,
    };
  };

const atLeast =
  (name: Word, read: (attempt: AttemptSnapshot) => number) =>
  ({ snapshot }: Looking, wanted: number): Seen => {
    const actual = Math.max(0, ...(snapshot?.attempts ?? []).map(read));
    return {
      name,
      expected: `>= ${wanted}`,
      actual: String(actual),
      ok: actual >= wanted,
      source: READ_OPERATION,
    };
  };

const sum = (digits: readonly string[]): bigint =>
  digits.reduce((total, each) => total + BigInt(each), 0n);

function chargedOf(attempts: readonly AttemptSnapshot[]): bigint | undefined {
  const charged = attempts.flatMap(({ chargedAmount }) => chargedAmount ?? []);
  return charged.length === 0 ? undefined : sum(charged);
}

/** Under its keys the provider knows a call by this; nothing begins so where there is no operation. */
const keysOf = ({ snapshot }: Looking): string => `${snapshot?.operationKey ?? 'none'}-`;

const READERS: { readonly [W in Word]-?: Reader<W> } = {
  state: plain('state', ({ state }) => state),
  outcome: plain('outcome', ({ outcome }) => outcome ?? 'open'),
  execution: plain('execution', ({ executionStatus }) => executionStatus),
  cancel: plain('cancel', ({ cancel }) => cancel),
  attempts: plain('attempts', ({ attempts }) => String(attempts.length), '0'),
  route: plain('route', (_, { route }) => route),
  phases: plain('phases', ({ attempts }) => String(attempts.map(({ phase }) => phase))),
  proof: plain('proof', (_, { proof }) => proof ?? 'none'),
  priced_by: plain('priced_by', (_, { pricedBy }) => pricedBy ?? 'none'),
  charged: money('charged', chargedOf),
  held: money('held', (attempts) => sum(attempts.map(({ heldAmount }) => heldAmount))),
  floor: money('floor', (attempts) => sum(attempts.map(({ floorAmount }) => floorAmount))),
  unknown_for_at_least: atLeast('unknown_for_at_least', ({ unknownMs }) => unknownMs ?? 0),
  questions_at_least: atLeast('questions_at_least', ({ questionCount }) => questionCount),
  reasons: ({ snapshot }, wanted) => {
    const reasons = (snapshot?.attempts ?? []).flatMap((attempt) =>
      attempt.reasons.map(({ reason }) => reason),
    );
    return {
      name: 'reasons',
      expected: wanted.join(','),
      actual: reasons.join(',') || 'none',
      ok: wanted.every((reason) => reasons.includes(reason)),
      source: READ_OPERATION,
    };
  },
  received: async (looking, wanted) => ({
    name: 'received',
    expected: String(wanted),
    actual: String(await looking.play.stage.provider.receivedUnder(keysOf(looking))),
    source: TRUTH,
  }),
  provider_charged: async (looking, wanted) => {
    const { play, unit } = looking;
    const actual = await play.stage.provider.chargedUnder(keysOf(looking));
    const expected = toAmount(wanted, unit, play.scenario.numbers);
    return {
      name: 'provider_charged',
      expected: String(expected),
      actual: String(actual),
      source: TRUTH,
    };
  },
  events: async ({ play, snapshot }, wanted) => {
    const key = snapshot?.operationKey;
    const events = key === undefined ? [] : await readTimeline(play.stage.ledger, key);
    return Object.entries(wanted).map(([kind, expected]) => ({
      name: `events ${kind}`,
      expected: String(expected),
      actual: String(events.filter((event) => event.kind === kind).length),
      source: 'ledger.event_view',
    }));
  },
  explains: async ({ call }, wanted) => {
    const says = (actual: string): boolean => actual.includes(wanted);
    const actual = await untilShown(() => call.handle.explain(), says);
    return { name: 'explains', expected: wanted, actual, ok: says(actual), source: TEMPORAL };
  },
  stop: plain('stop', (snapshot) => reportStop(snapshot).status),
  alerts: ({ snapshot }, wanted) => {
    const raised = [...new Set((snapshot?.alerts ?? []).map(({ kind }) => kind))].sort();
    const expected = [...wanted].sort().join(',') || 'none';
    return { name: 'alerts', expected, actual: raised.join(',') || 'none', source: READ_OPERATION };
  },
  needs_operator: ({ snapshot }, wanted) => ({
    name: 'needs_operator',
    expected: String(wanted),
    actual: String(snapshot?.needsOperator ?? false),
    source: READ_OPERATION,
  }),
  cancels: async (looking, wanted) => ({
    name: 'cancels',
    expected: String(wanted),
    actual: String(await looking.play.stage.provider.cancelsUnder(keysOf(looking))),
    source: TRUTH,
  }),
  remote: async (looking, wanted) => ({
    name: 'remote',
    expected: wanted,
    actual: await looking.play.stage.provider.stateUnder(keysOf(looking)),
    source: TRUTH,
  }),
  supervisor: async ({ play, call }, wanted) => {
    const { temporal, taskQueue } = play.stage;
    const found = await createSupervisors(temporal, taskQueue).look(call.handle.workflowId);
    return { name: 'supervisor', expected: wanted, actual: found.supervisor, source: TEMPORAL };
  },
  history_at_most: async (looking, wanted) => {
    const described = await describe(looking);
    const actual = described?.historyLength ?? 0;
    return {
      name: 'history_at_most',
      expected: `<= ${wanted}`,
      actual: String(actual),
      ok: actual > 0 && actual <= wanted,
      source: TEMPORAL,
    };
  },
  temporal: async (looking, wanted) => {
    const described = await describe(looking);
    const actual = described?.status.name ?? 'none';
    return { name: 'temporal', expected: wanted, actual, source: TEMPORAL };
  },
  attributes: async (looking, wanted) => {
    return untilShown(
      () => readAttributes(looking, wanted),
      (seen) => seen.every(({ expected, actual }) => expected === actual),
    );
  },
};

/** A supervisor shows what the ledger has said to it, a moment later. */
async function untilShown<T>(read: () => Promise<T>, isShown: (value: T) => boolean): Promise<T> {
  const until = performance.now() + SHOWN_LIMIT_MS;
  for (;;) {
    const value = await read();
    if (isShown(value) || performance.now() > until) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function readAttributes(
  looking: Looking,
  wanted: NonNullable<CallFigures['attributes']>,
): Promise<Seen[]> {
  const described = await describe(looking);
  const attributes = new Map(
    described?.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, String(value)]),
  );
  return Object.entries(wanted).map(([name, expected]) => ({
    name: `attribute ${name}`,
    expected: String(expected),
    actual: attributes.get(name) ?? 'none',
    source: TEMPORAL,
  }));
}

function describe({ play, call }: Looking) {
  const handle = play.stage.temporal.workflow.getHandle(call.handle.workflowId);
  return handle.describe().catch(() => undefined);
}

export async function compareCall(
  play: Play,
  told: { readonly name: string; readonly figures: CallFigures; readonly line: number },
): Promise<void> {
  const call = callOf(play, told.name);
  const snapshot = await operationOf(play, call);
  const unit = snapshot === undefined ? 'credit' : newestAttempt(snapshot).unit;
  for (const [word, wanted] of Object.entries(told.figures)) {
    const read = READERS[word as Word] as Reader<Word>;
    for (const seen of [await read({ play, call, snapshot, unit }, wanted as never)].flat()) {
      check(play, { ...seen, name: `call ${told.name} ${seen.name}`, line: told.line });
    }
  }
}
