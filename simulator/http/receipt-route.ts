// GET /v1/receipts/by-key/:key and GET /v1/receipts/:id
// -----------------------------------------------------
// Each lookup is booked before it is answered, with what it will say.

import type { Book } from '../book/book.js';
import type { Execution } from '../book/state.js';
import { readSwitches } from '../script/read-script.js';
import type { LookupSwitches } from '../script/switches.js';
import { isShownRunning, stateReceipt } from '../statements.js';
import type { World } from '../world.js';
import { reportOf } from './answers.js';
import { deliver, errorReply, jsonReply, staySilent } from './delivery.js';
import type { Reply, SimulatorContext } from './delivery.js';
import { hasCredential } from './request-head.js';

export type Wanted = { readonly key: string } | { readonly id: string };

type Answer =
  | { readonly kind: 'hang' }
  | { readonly kind: 'found'; readonly execution: Execution }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string };

export function answerReceipt(
  context: SimulatorContext,
  world: World,
  wanted: Wanted,
): Response | Promise<Response> {
  const { book } = world;
  const { execution, key } = findWanted(book, wanted);
  const own = readOwnLookup(context);
  if (own.status === 'unreadable') return deliver(context, book, errorReply(400, own));
  const lookup = own.lookup ?? scriptedLookup(book, key, execution);
  const answer: Answer = hasCredential(context)
    ? decideAnswer(book, lookup, execution)
    : { kind: 'refused', status: 401, message: 'No API key was sent.' };
  const seq = book.state.lookups.length + 1;
  book.record({
    event: 'lookup',
    seq,
    key,
    id: execution?.id ?? null,
    answer: nameAnswer(answer),
  });
  if (answer.kind === 'hang') return staySilent(context);
  const reply =
    answer.kind === 'refused'
      ? errorReply(answer.status, answer, lookup.retry_after_s)
      : receiptReply(answer.execution, seq);
  return deliver(context, book, { ...reply, form: lookup.body });
}

type OwnLookup =
  | { readonly status: 'read'; readonly lookup: LookupSwitches | undefined }
  | { readonly status: 'unreadable'; readonly message: string };

function readOwnLookup(context: SimulatorContext): OwnLookup {
  const text = context.req.header('x-simulate');
  if (text === undefined) return { status: 'read', lookup: undefined };
  const read = readSwitches(text);
  return read.status === 'read' ? { status: 'read', lookup: read.value.lookup } : read;
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
  const ofKey = key === null ? undefined : book.state.unacceptedLookups.get(key);
  return execution?.switches.lookup ?? ofKey ?? {};
}

function decideAnswer(
  book: Book,
  lookup: LookupSwitches,
  execution: Execution | undefined,
): Answer {
  if (lookup.hang === true) return { kind: 'hang' };
  const ageMs = execution === undefined ? 0 : book.clock.nowMs() - execution.acceptedAtMs;
  const isForgotten = lookup.forgets_after_ms !== undefined && ageMs >= lookup.forgets_after_ms;
  const isVisible = execution !== undefined && finds(lookup, execution, ageMs);
  if (isVisible && !isForgotten) return { kind: 'found', execution };
  const status = isForgotten && isVisible ? 404 : (lookup.status ?? 404);
  const message =
    status === 404 ? 'There is no such receipt.' : `The lookup failed with ${status}.`;
  return { kind: 'refused', status, message };
}

function finds(lookup: LookupSwitches, execution: Execution, ageMs: number): boolean {
  switch (lookup.finds) {
    case undefined:
      return lookup.status === undefined;
    case 'at_once':
      return true;
    case 'never':
      return false;
    case 'after_ms':
      return ageMs >= (lookup.after_ms ?? 0);
    case 'after_count':
      return execution.lookupCount >= (lookup.after_count ?? 0);
    case 'after_release':
      return execution.released;
  }
}

function nameAnswer(answer: Answer): string {
  if (answer.kind === 'hang') return 'hang';
  if (answer.kind === 'found') {
    return isShownRunning(answer.execution) ? 'running' : answer.execution.state;
  }
  return answer.status === 404 ? 'not_found' : `status_${answer.status}`;
}

function receiptReply(execution: Execution, seq: number): Reply {
  const reply = jsonReply(200, stateReceipt(execution));
  if (isShownRunning(execution)) return reply;
  return { ...reply, booked: { whole: reportOf(execution, { seq, via: 'lookup' }) } };
}
