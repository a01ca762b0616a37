// Jobs
// ----
// Starts remote jobs, lets them tick, and ends them. Nothing here knows of HTTP.
//
// 1. At each tick every running job gains one tick and is charged for it; what has ended gains and costs nothing.
// 2. What one tick does to all jobs is booked with one call, so a kill leaves whole ticks.
// 3. The running total never exceeds what a script says the job comes to in the end.

import { randomUUID } from 'node:crypto';
import type { Book } from './book/book.js';
import { formatCredits, parseCredits } from './book/credits.js';
import type { Credits } from './book/credits.js';
import type { ChargeCause, Entry, JobState } from './book/entries.js';
import type { Job } from './book/jobs-state.js';
import { oddId } from './odd-id.js';
import type { Switches } from './script/switches.js';

export type JobOrder = {
  readonly seq: number;
  readonly receivedRealAt: string;
  readonly key: string | null;
  readonly model: string;
  readonly limitTicks: number;
  readonly digest: string;
  readonly rate: Credits;
  readonly switches: Switches;
};

/** A cancel that was received, and what it does to the job. */
export type CancelOrder = {
  readonly key: string | null;
  readonly job: Job | undefined;
  readonly answer: string;
  /** How many ticks it still has; `never` is taken without effect, and left out asks for nothing. */
  readonly endsAfterTicks?: number | 'never' | undefined;
};

export type Jobs = {
  readonly start: (order: JobOrder) => Job;
  /** Resolves when the answer to its create may go. */
  readonly whenAnswerable: (job: Job) => Promise<void>;
  readonly tick: (count: number) => void;
  /** A tick of real time: a world in which nothing runs lets it pass unbooked, so that its book does not grow. */
  readonly tickByItself: () => void;
  readonly cancel: (order: CancelOrder) => void;
  readonly release: (job: Job) => void;
  readonly finish: (job: Job, total: string | undefined) => void;
  readonly correct: (job: Job, total: string) => void;
};

/** Whether something about it waits for a release. */
export function jobAwaitsRelease({ released, switches }: Job): boolean {
  if (released) return false;
  const lookups = [switches.lookup, switches.charge_lookup];
  return (
    switches.until_released === true ||
    switches.usage === 'later' ||
    switches.charge_field === 'later' ||
    lookups.some((each) => each?.running_until_released === true) ||
    lookups.some((each) => each?.finds === 'after_release')
  );
}

export function createJobs(book: Book): Jobs {
  const { state, clock } = book;
  const waiting = new Map<string, (() => void)[]>();
  const listRunning = (): readonly Job[] =>
    [...state.jobs.values()].filter((job) => job.state === 'running');

  function tickOnce(running: readonly Job[]): void {
    book.record(ticksEntryOf(state.worldTicks + 1, running), ...running.flatMap(tickEntriesOf));
  }

  return {
    start(order) {
      const id = startJob(book, order);
      const job = state.jobs.get(id);
      if (job === undefined) throw new RangeError(`Job ${id} was not booked.`);
      return job;
    },
    whenAnswerable(job) {
      const { answer, delay_ms: delayMs } = job.switches;
      if (answer !== 'late' || job.released) return Promise.resolve();
      return new Promise((resolve) => {
        if (delayMs !== undefined) clock.at(job.acceptedAtMs + delayMs, resolve);
        else waiting.set(job.id, [...(waiting.get(job.id) ?? []), resolve]);
      });
    },
    tick(count) {
      for (let left = count; left > 0; left -= 1) {
        const running = listRunning();
        if (running.length === 0) {
          book.record(ticksEntryOf(state.worldTicks + left, running));
          return;
        }
        tickOnce(running);
      }
    },
    tickByItself() {
      const running = listRunning();
      if (running.length > 0) tickOnce(running);
    },
    cancel(order) {
      book.record(...cancelEntriesOf(order, state.cancels.length + 1));
    },
    release(job) {
      book.record({ event: 'release', id: job.id });
      for (const wake of waiting.get(job.id) ?? []) wake();
      waiting.delete(job.id);
    },
    finish(job, total) {
      const final = total ?? job.switches.charge ?? job.charged;
      book.record(...chargeEntriesOf(job, final, 'finish'), endEntryOf(job, 'completed'));
    },
    correct(job, total) {
      book.record({ event: 'charge', id: job.id, total, cause: 'correction' });
    },
  };
}

function startJob(book: Book, order: JobOrder): string {
  const { seq, receivedRealAt, key, model, limitTicks, digest, switches } = order;
  const id = switches.id === 'odd' ? oddId('job') : `job_${randomUUID().replaceAll('-', '')}`;
  const executionNo = (book.state.jobsByKey.get(key)?.length ?? 0) + 1;
  const known = { seq, key, model, limitTicks, id, executionNo };
  const ticksInAll = BigInt(limitTicks + (switches.overruns ?? 0));
  book.record(
    {
      event: 'request',
      ...known,
      receivedRealAt,
      maxTokens: null,
      outcome: 'accepted',
      reason: null,
      lookup: null,
      chargeLookup: null,
    },
    {
      event: 'job',
      ...known,
      statedId: stateId(book, id, switches),
      rate: formatCredits(order.rate),
      digest,
      switches,
      bill: switches.charge ?? formatCredits(order.rate * ticksInAll),
    },
  );
  return id;
}

function stateId(book: Book, id: string, switches: Switches): string | null {
  if (switches.id === 'omitted') return null;
  if (switches.id !== 'duplicate') return id;
  return [...book.state.jobs.values()].at(-1)?.statedId ?? id;
}

function ticksEntryOf(worldTicks: number, running: readonly Job[]): Entry {
  return { event: 'ticks', worldTicks, running: running.map(({ id }) => id) };
}

function tickEntriesOf(job: Job): readonly Entry[] {
  const end = endAt(job, job.ticks + 1);
  const { charge } = job.switches;
  const total = end !== undefined && charge !== undefined ? charge : totalAfterTick(job);
  return [
    ...chargeEntriesOf(job, total, 'tick'),
    ...(end === undefined ? [] : [endEntryOf(job, end)]),
  ];
}

/** At its limit it has done its work, also where a cancel was to stop it just then. */
function endAt(job: Job, ticks: number): JobState | undefined {
  const { limitTicks, cancelDueTicks, switches } = job;
  if (ticks >= limitTicks + (switches.overruns ?? 0)) return switches.ends ?? 'completed';
  return cancelDueTicks !== null && ticks >= cancelDueTicks ? 'cancelled' : undefined;
}

function totalAfterTick({ charged, rate, switches }: Job): string {
  const before = parseCredits(charged);
  const after = before + parseCredits(rate);
  const most = switches.charge === undefined ? after : parseCredits(switches.charge);
  const total = after < most ? after : most;
  return formatCredits(total > before ? total : before);
}

/** Nothing where the total stays as it is. */
function chargeEntriesOf(job: Job, total: string, cause: ChargeCause): readonly Entry[] {
  return total === job.charged ? [] : [{ event: 'charge', id: job.id, total, cause }];
}

function endEntryOf({ id }: Job, state: JobState): Entry {
  return { event: 'job_end', id, state };
}

function cancelEntriesOf(order: CancelOrder, seq: number): readonly Entry[] {
  const { key, job, answer, endsAfterTicks } = order;
  const isTaken = job !== undefined && endsAfterTicks !== undefined;
  const dueTicks = isTaken && endsAfterTicks !== 'never' ? job.ticks + endsAfterTicks : null;
  const cancel: Entry = {
    event: 'cancel',
    seq,
    key,
    id: job?.id ?? null,
    answer,
    isTaken,
    dueTicks,
  };
  if (!isTaken || dueTicks === null || dueTicks > job.ticks) return [cancel];
  const total = job.switches.charge ?? job.charged;
  return [cancel, ...chargeEntriesOf(job, total, 'finish'), endEntryOf(job, 'cancelled')];
}
