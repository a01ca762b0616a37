// Executions
// ----------
// Starts work, ends it, and books what it costs. Nothing here knows of HTTP: a client that leaves changes nothing.
//
// 1. An accepted request is in the book, with its charge where it is charged at once, before it is answered.
// 2. An execution ends once; what it costs afterwards is changed by a correction alone.

import { randomUUID } from 'node:crypto';
import type { Book } from './book/book.js';
import { formatCredits } from './book/credits.js';
import type { Entry, ExecutionEntry, ExecutionState } from './book/entries.js';
import { priceOf } from './book/prices.js';
import type { Price, PriceList } from './book/prices.js';
import type { Execution } from './book/state.js';
import { oddId } from './odd-id.js';
import type { Switches } from './script/switches.js';

export type Order = {
  readonly seq: number;
  readonly receivedRealAt: string;
  readonly key: string | null;
  readonly model: string;
  readonly maxTokens: number;
  readonly promptTokens: number;
  readonly digest: string;
  readonly price: Price;
  readonly switches: Switches;
};

export type Finish = {
  readonly promptTokens?: number | undefined;
  readonly completionTokens?: number | undefined;
  readonly charge?: string | undefined;
};

export type Executions = {
  readonly start: (order: Order) => Execution;
  readonly whenEnded: (execution: Execution) => Promise<void>;
  readonly release: (execution: Execution) => void;
  readonly finish: (execution: Execution, finish: Finish) => void;
  readonly correct: (execution: Execution, total: string) => void;
};

/** Whether something about it waits for a release. */
export function awaitsRelease({ state, released, switches }: Execution): boolean {
  if (state === 'running') return true;
  if (released) return false;
  return (
    switches.lookup?.running_until_released === true ||
    switches.lookup?.finds === 'after_release' ||
    switches.usage === 'later' ||
    switches.charge_field === 'later'
  );
}

export function createExecutions(book: Book, prices: PriceList): Executions {
  const waiting = new Map<string, (() => void)[]>();

  function announceEnd({ id }: Execution): void {
    for (const wake of waiting.get(id) ?? []) wake();
    waiting.delete(id);
  }

  function end(execution: Execution): void {
    if (execution.state !== 'running') return;
    const charge: Entry = {
      event: 'charge',
      id: execution.id,
      total: execution.bill,
      cause: 'answer',
    };
    const isBooked = execution.chargedAt !== null;
    book.record(...(isBooked ? [] : [charge]), endEntryOf(execution));
    announceEnd(execution);
  }

  function endInTime(execution: Execution): void {
    const { delay_ms: delayMs } = execution.switches;
    if (execution.state !== 'running' || delayMs === undefined) return;
    book.clock.at(execution.acceptedAtMs + delayMs, () => {
      end(execution);
    });
  }

  // What was running when the last process ended goes on in this one.
  for (const execution of book.state.executions.values()) endInTime(execution);

  return {
    start(order) {
      const id = startExecution(book, order);
      const execution = book.state.executions.get(id);
      if (execution === undefined) throw new RangeError(`Execution ${id} was not booked.`);
      endInTime(execution);
      return execution;
    },
    whenEnded(execution) {
      if (execution.state !== 'running') return Promise.resolve();
      return new Promise((resolve) => {
        waiting.set(execution.id, [...(waiting.get(execution.id) ?? []), resolve]);
      });
    },
    release(execution) {
      book.record({ event: 'release', id: execution.id });
      end(execution);
    },
    finish(execution, finish) {
      book.record(...finishEntriesOf(execution, finish, prices));
      announceEnd(execution);
    },
    correct(execution, total) {
      book.record({ event: 'charge', id: execution.id, total, cause: 'correction' });
    },
  };
}

function startExecution(book: Book, order: Order): string {
  const { seq, receivedRealAt, key, model, maxTokens, promptTokens, digest, switches } = order;
  const id =
    switches.id === 'odd' ? oddId('chatcmpl') : `chatcmpl-${randomUUID().replaceAll('-', '')}`;
  const executionNo = (book.state.executionsByKey.get(key)?.length ?? 0) + 1;
  const completionTokens = switches.completion_tokens ?? maxTokens;
  const bill = switches.charge ?? formatCredits(priceOf(order.price, completionTokens));
  const known = { seq, key, model, maxTokens, id, executionNo };
  const execution: ExecutionEntry = {
    event: 'execution',
    ...known,
    statedId: stateId(book, id, switches),
    promptTokens,
    completionTokens,
    digest,
    switches,
    bill,
  };
  const atAnswer = switches.charge_at === 'answer';
  const runsOn = switches.answer === 'late' || (switches.answer === 'never' && atAnswer);
  const charge: Entry = { event: 'charge', id, total: bill, cause: 'accept' };
  book.record(
    {
      event: 'request',
      ...known,
      receivedRealAt,
      limitTicks: null,
      outcome: 'accepted',
      reason: null,
      lookup: null,
      chargeLookup: null,
    },
    execution,
    ...(runsOn && atAnswer ? [] : [charge]),
    ...(runsOn ? [] : [endEntryOf(execution)]),
  );
  return id;
}

function stateId(book: Book, id: string, switches: Switches): string | null {
  if (switches.id === 'omitted') return null;
  if (switches.id !== 'duplicate') return id;
  return [...book.state.executions.values()].at(-1)?.statedId ?? id;
}

function endEntryOf(
  execution: Pick<Execution, 'id' | 'switches' | 'promptTokens' | 'completionTokens'>,
  finish: Finish = {},
): Entry {
  const { switches } = execution;
  const byFailure: ExecutionState =
    switches.fail_after_accepting === undefined ? 'completed' : 'failed';
  return {
    event: 'end',
    id: execution.id,
    state: switches.ends ?? byFailure,
    promptTokens: finish.promptTokens ?? execution.promptTokens,
    completionTokens: finish.completionTokens ?? execution.completionTokens,
  };
}

function finishEntriesOf(execution: Execution, finish: Finish, prices: PriceList): Entry[] {
  const price = finish.completionTokens === undefined ? undefined : prices.get(execution.model);
  const total = finish.charge ?? priceText(price, finish.completionTokens) ?? execution.bill;
  const isBooked = execution.chargedAt !== null && execution.charged === total;
  const charge: Entry = { event: 'charge', id: execution.id, total, cause: 'finish' };
  return [
    { event: 'release', id: execution.id },
    ...(isBooked ? [] : [charge]),
    endEntryOf(execution, finish),
  ];
}

function priceText(price: Price | undefined, tokenCount: number | undefined): string | undefined {
  if (price === undefined || tokenCount === undefined) return undefined;
  return formatCredits(priceOf(price, tokenCount));
}
