// Delivery
// --------
// Brings a reply to the client, whole, spoilt or not at all, and books what left completely.
//
// 1. A client that is gone is never an error: nothing is sent to it, and nothing is booked as sent.

import { randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { Book } from '../book/book.js';
import type { Entry } from '../book/entries.js';
import { errorForm } from './error-form.js';
import type { ErrorDetail } from './error-form.js';

/** The sockets are there in a real server and missing when the app is called as a function. */
export type SimulatorEnv = { Bindings: Partial<HttpBindings> };
export type SimulatorContext = Context<SimulatorEnv>;

export type BodyForm = 'garbage' | 'truncated' | 'html';

export type Reply = {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: BodyForm | undefined;
  /** Booked when the reply has left; `whole` only if it left unspoilt. */
  readonly booked?: { readonly always?: Entry; readonly whole?: Entry };
};

const JSON_TYPE = 'application/json';

export function jsonReply(status: number, body: unknown): Reply {
  return { status, body: JSON.stringify(body) };
}

export function errorReply(status: number, detail: ErrorDetail, retryAfterS?: number): Reply {
  const headers = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  return { ...jsonReply(status, errorForm(status, detail)), headers };
}

export function deliver(context: SimulatorContext, book: Book, reply: Reply): Response {
  const { outgoing } = context.env;
  if (outgoing?.destroyed === true) return RESPONSE_ALREADY_SENT;
  const { status, body, headers } = spoil(reply);
  const entries = [
    reply.booked?.always,
    reply.form === undefined ? reply.booked?.whole : undefined,
  ].filter((entry) => entry !== undefined);
  if (reply.form === 'truncated' && outgoing !== undefined) {
    outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    outgoing.write(body.slice(0, body.length / 2), () => outgoing.destroy());
    return RESPONSE_ALREADY_SENT;
  }
  if (outgoing === undefined) book.record(...entries);
  else
    outgoing.once('finish', () => {
      book.record(...entries);
    });
  return new Response(body, { status, headers });
}

function spoil(reply: Reply): { status: number; body: string; headers: Record<string, string> } {
  const headers = {
    'content-type': JSON_TYPE,
    'x-request-id': `req-${randomUUID()}`,
    ...reply.headers,
  };
  if (reply.form === 'html') {
    // As a proxy in between would answer: nothing of the provider's own is left in it.
    const body = `<html><body><h1>${reply.status}</h1><p>The upstream did not answer.</p></body></html>`;
    return { status: reply.status, body, headers: { 'content-type': 'text/html' } };
  }
  if (reply.form === 'garbage')
    return { status: reply.status, body: '{"id": 4f\u0000}}<<', headers };
  return { status: reply.status, body: reply.body, headers };
}

/** Ends the connection without a word. Before reading it is reset, later it is closed. */
export function dropConnection(context: SimulatorContext, how: 'reset' | 'close'): Response {
  const { incoming } = context.env;
  if (how === 'reset') incoming?.socket.resetAndDestroy();
  else incoming?.socket.destroy();
  return RESPONSE_ALREADY_SENT;
}

/** Resolves when the client has gone; for an app that is called as a function, never. */
export function whenClientIsGone(context: SimulatorContext): Promise<void> {
  return new Promise((resolve) => {
    const { outgoing } = context.env;
    if (outgoing?.destroyed === true) resolve();
    outgoing?.once('close', resolve);
  });
}

/** Keeps the connection open and says nothing. */
export async function staySilent(context: SimulatorContext): Promise<Response> {
  await whenClientIsGone(context);
  return RESPONSE_ALREADY_SENT;
}
