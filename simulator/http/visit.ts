// A visit
// -------
// One request that is to start work, from its arrival to the point where its kind of work decides.
//
// 1. 401 and 503 are documented: refused before work, and never charged.
// 2. Every request that arrives gets one entry in the book, whatever becomes of it.
// 3. Nothing is awaited behind the body, so that what decides can look for a key and start work in one go.

import type { Entry, RequestEntry } from '../book/entries.js';
import { readSwitches } from '../script/read-script.js';
import type { Switches } from '../script/switches.js';
import type { World } from '../world.js';
import { deliver, dropConnection, errorReply } from './delivery.js';
import type { SimulatorContext } from './delivery.js';
import type { ErrorDetail } from './error-form.js';
import { modelOf } from './request-body.js';
import { hasCredential, keyOf } from './request-head.js';

export type Visit = {
  readonly context: SimulatorContext;
  readonly world: World;
  readonly seq: number;
  readonly receivedRealAt: string;
  readonly key: string | null;
};

export type Refusal = ErrorDetail & {
  readonly status: number;
  readonly reason: string;
  readonly request?: RefusedRequest | undefined;
  readonly switches?: Switches;
};

type RefusedRequest = {
  readonly model: string | null;
  readonly maxTokens?: number;
  readonly limitTicks?: number;
};

/** What was read of a request that its script lets through. */
export type Arrived = { readonly body: unknown; readonly switches: Switches };

export type Decide = (visit: Visit, arrived: Arrived) => Response | Promise<Response>;

export function openVisit(context: SimulatorContext, world: World): Visit {
  const key = keyOf(context);
  const seq = world.book.nextSeq();
  return { context, world, seq, receivedRealAt: new Date().toISOString(), key };
}

export async function receive(visit: Visit, decide: Decide): Promise<Response> {
  const { context, world, key } = visit;
  const read = readHeaderSwitches(context);
  if (read.status === 'unreadable') {
    return refuse(visit, { status: 400, reason: 'x-simulate', message: read.message });
  }
  const own = read.value;
  if (own === undefined ? world.behaviours.dropsUnread(key) : own.drop === 'before_reading') {
    return dropUnread(visit, own ?? world.behaviours.take({ key, model: null }), null);
  }
  if (!hasCredential(context)) {
    return refuse(visit, { status: 401, reason: 'no_credential', message: 'No API key was sent.' });
  }
  const body = await readBody(context);
  if (body.status === 'gone') {
    const message = 'The body did not arrive.';
    return refuse(visit, { status: 400, reason: 'client_gone', message });
  }
  return followScript(visit, { body: body.value, own }, decide);
}

type HeaderSwitches =
  | { readonly status: 'read'; readonly value: Switches | undefined }
  | { readonly status: 'unreadable'; readonly message: string };

export function readHeaderSwitches(context: SimulatorContext): HeaderSwitches {
  const text = context.req.header('x-simulate');
  return text === undefined ? { status: 'read', value: undefined } : readSwitches(text);
}

type Body = { readonly status: 'read'; readonly value: unknown } | { readonly status: 'gone' };

async function readBody(context: SimulatorContext): Promise<Body> {
  let text: string;
  try {
    text = await context.req.text();
  } catch {
    return { status: 'gone' };
  }
  try {
    return { status: 'read', value: JSON.parse(text) as unknown };
  } catch {
    return { status: 'read', value: undefined };
  }
}

function followScript(
  visit: Visit,
  { body, own }: { readonly body: unknown; readonly own: Switches | undefined },
  decide: Decide,
): Response | Promise<Response> {
  const { world, key } = visit;
  const model = modelOf(body);
  const switches = own ?? world.behaviours.take({ key, model });
  if (switches.drop === 'before_reading') return dropUnread(visit, switches, model);
  const { status } = switches;
  if (status === undefined) return decide(visit, { body, switches });
  const message = `Refused before any work with ${status}.`;
  const reason = `status_${status}`;
  return refuse(visit, { status, reason, message, request: { model }, switches });
}

function dropUnread(visit: Visit, switches: Switches, model: string | null): Response {
  visit.world.book.record({
    ...requestEntryOf(visit, 'dropped_before_reading'),
    ...unacceptedLookupsOf(switches),
    model,
  });
  return dropConnection(visit.context, 'reset');
}

export function refuse(visit: Visit, refusal: Refusal): Response {
  const { status, reason, request, switches = {} } = refusal;
  visit.world.book.record({
    ...requestEntryOf(visit, 'refused'),
    ...unacceptedLookupsOf(switches),
    reason,
    model: request?.model ?? null,
    maxTokens: request?.maxTokens ?? null,
    limitTicks: request?.limitTicks ?? null,
  });
  const always: Entry = { event: 'answered', seq: visit.seq, status };
  const reply = errorReply(status, refusal, switches.retry_after_s);
  return deliver(visit.context, visit.world.book, {
    ...reply,
    form: switches.body,
    booked: { always },
  });
}

function unacceptedLookupsOf(switches: Switches): Pick<RequestEntry, 'lookup' | 'chargeLookup'> {
  return { lookup: switches.lookup ?? null, chargeLookup: switches.charge_lookup ?? null };
}

export function requestEntryOf(visit: Visit, outcome: RequestEntry['outcome']): RequestEntry {
  const { seq, receivedRealAt, key } = visit;
  return {
    event: 'request',
    seq,
    receivedRealAt,
    key,
    model: null,
    maxTokens: null,
    limitTicks: null,
    outcome,
    reason: null,
    id: null,
    executionNo: null,
    lookup: null,
    chargeLookup: null,
  };
}
