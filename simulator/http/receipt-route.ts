// GET /v1/receipts/by-key/:key and GET /v1/receipts/:id
// -----------------------------------------------------
// Each lookup is booked before it is answered, with what it will say.

import type { Book } from '../book/book.js';
import type { Execution } from '../book/state.js';
import type { LookupSwitches } from '../script/switches.js';
import { isShownRunning, stateReceipt } from '../statements.js';
import type { World } from '../world.js';
import { reportOf } from './answers.js';
import { deliver, errorReply, jsonReply, staySilent } from './delivery.js';
import type { Reply, SimulatorContext } from './delivery.js';
import { decideLookup, nameVerdict, NO_CREDENTIAL } from './lookup-script.js';
import { hasCredential } from './request-head.js';
import { readHeaderSwitches } from './visit.js';

export type Wanted = { readonly key: string } | { readonly id: string };

export function answerReceipt(
  context: SimulatorContext,
  world: World,
  wanted: Wanted,
): Response | Promise<Response> {
  const { book } = world;
  const { execution, key } = findWanted(book, wanted);
  const own = readHeaderSwitches(context);
  if (own.status === 'unreadable') return deliver(context, book, errorReply(400, own));
  const lookup = own.value?.lookup ?? scriptedLookup(book, key, execution);
  const askedCount = execution?.lookupCount ?? 0;
  const verdict = hasCredential(context)
    ? decideLookup(book, { lookup, sought: execution, askedCount, noun: 'receipt' })
    : NO_CREDENTIAL;
  const seq = book.state.lookups.length + 1;
  book.record({
    event: 'lookup',
    seq,
    question: 'receipt',
    key,
    id: execution?.id ?? null,
    answer: nameVerdict(verdict, nameState),
  });
  if (verdict.kind === 'hang') return staySilent(context);
  const reply =
    verdict.kind === 'refused'
      ? errorReply(verdict.status, verdict, lookup.retry_after_s)
      : receiptReply(verdict.found, seq);
  return deliver(context, book, { ...reply, form: lookup.body });
}

type Found = { readonly execution: Execution | undefined; readonly key: string | null };

/** Several executions under one key: the last one is found. */
function findWanted({ state }: Book, wanted: Wanted): Found {
  if ('key' in wanted) {
    return { execution: state.executionsByKey.get(wanted.key)?.at(-1), key: wanted.key };
  }
  const execution = state.executions.get(wanted.id);
  return { execution, key: execution?.key ?? null };
}

function scriptedLookup(
  book: Book,
  key: string | null,
  execution: Execution | undefined,
): LookupSwitches {
  const ofKey = key === null ? undefined : book.state.unacceptedLookups.get(key)?.lookup;
  return execution?.switches.lookup ?? ofKey ?? {};
}

function nameState(execution: Execution): string {
  return isShownRunning(execution) ? 'running' : execution.state;
}

function receiptReply(execution: Execution, seq: number): Reply {
  const reply = jsonReply(200, stateReceipt(execution));
  if (isShownRunning(execution)) return reply;
  return { ...reply, booked: { whole: reportOf(execution, { seq, via: 'lookup' }) } };
}
