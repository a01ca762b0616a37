// Answers
// -------
// What is the same for every HTTP provider: where an answer came from, and what is said when it says nothing.

import { createHash } from 'node:crypto';
import type { Evidence, Observation, UnknownReason } from '../domain/observation.js';
import type { Dispatched } from './port.js';
import type { HttpResponse, Lost, NotSent } from './transport.js';

type NoAnswer = Extract<Observation, { kind: 'no_answer' }>;

/** A longer wish is a mistake, or a way to never be asked again. */
const RETRY_AFTER_MS_MAX = 24 * 60 * 60 * 1000;
const REFERENCE_LENGTH_MAX = 200;

export function describeEvidence(
  source: 'response' | 'lookup',
  response: HttpResponse,
  remoteId?: string,
): Evidence {
  const { status, headers, text } = response;
  const reference = headers['x-request-id'] ?? remoteId ?? `http ${status}`;
  return {
    source,
    reference: reference.slice(0, REFERENCE_LENGTH_MAX),
    digest: createHash('sha256').update(text).digest('hex'),
    status: String(status),
  };
}

interface Silence {
  readonly reason: UnknownReason;
  readonly detail: string;
  readonly evidence: Evidence;
  readonly remoteId?: string | undefined;
  readonly response?: HttpResponse;
}

export function noAnswer({ reason, detail, evidence, remoteId, response }: Silence): NoAnswer {
  const retryAfterMs = readRetryAfterMs(response?.headers['retry-after'], Date.now());
  return {
    kind: 'no_answer',
    reason,
    detail,
    ...(remoteId !== undefined && { remoteId }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    evidence,
  };
}

/** A request that was answered by nobody: provably not sent, or lost on its way there or back. */
export function dispatchedUnheard(answer: NotSent | Lost): Dispatched {
  if (answer.kind === 'lost') return { kind: 'observed', observation: unheard(answer) };
  const { reason, detail } = answer;
  return {
    kind: reason === 'late' ? 'late' : 'observed',
    observation: {
      kind: 'not_accepted',
      proof: 'no_connection',
      detail,
      evidence: { source: 'transport', reference: reason },
    },
  };
}

/** The caller's text cannot be brought into the provider's form, and so nothing was sent. */
export function unwritable(detail: string): Dispatched {
  return dispatchedUnheard({ kind: 'not_sent', reason: 'no_connection', detail });
}

export function unheard({ detail, partial }: Lost): NoAnswer {
  const status = partial === undefined ? {} : { status: String(partial.status) };
  const evidence: Evidence = { source: 'transport', reference: 'lost', ...status };
  return noAnswer({ reason: 'no_answer', detail, evidence });
}

/** Seconds or an HTTP date; anything else is as good as none. */
function readRetryAfterMs(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  const isSeconds = /^\d+$/.test(text.trim());
  const delayMs = isSeconds ? Number(text) * 1000 : Date.parse(text) - nowMs;
  if (Number.isNaN(delayMs)) return undefined;
  return Math.min(Math.max(delayMs, 0), RETRY_AFTER_MS_MAX);
}

/** Undefined for text that is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** `/v1/x` behind whatever path the base has. */
export function joinUrl(baseUrl: string, path: string): URL {
  return new URL(baseUrl.replace(/\/+$/, '') + path);
}
