// Metered jobs provider
// ---------------------
// The adapter for the generic HTTP contract of a provider that runs jobs: submit, status, charge and
// cancel, each a request of its own.
//
// Invariants:
//   J1. Our key is the identity: a job is asked about under it, whatever id its provider stated.
//   J2. Nothing is cancelled but what was found under our own key a moment before.
//   J3. An answer to a cancel says what became of the asking, never of the work.

import type { Observation } from '../../domain/observation.js';
import {
  describeEvidence,
  dispatchedUnheard,
  joinUrl,
  noAnswer,
  parseJson,
  unheard,
  unwritable,
} from '../answers.js';
import type {
  CancelAnswer,
  Dispatched,
  DispatchRequest,
  LookUpRequest,
  ProviderCapabilities,
  ProviderPort,
} from '../port.js';
import {
  createTransport,
  type HttpRequest,
  type HttpResponse,
  type Lost,
  type Transport,
} from '../transport.js';
import { ownErrorCode, readCharge, readCreated, readJob, showableId } from './job-answers.js';

export interface MeteredJobsOptions {
  readonly name: string;
  /** Up to where `/v1/jobs` begins. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly transport?: Transport;
}

/** "401: refused before work, charged: false. 503: refused before work, charged: false." On a create alone. */
const REJECTED_ON_SUBMIT: readonly number[] = [401, 503];
const DAY_MS = 24 * 60 * 60 * 1000;

const CAPABILITIES: ProviderCapabilities = {
  lookUpByKey: {
    value: 'exact',
    grade: 'documented',
    source: 'metered jobs contract, lookups: "GET /v1/jobs/by-key/:key"',
  },
  cancel: {
    value: 'best_effort',
    grade: 'documented',
    source: 'metered jobs contract, cancel: "POST /v1/jobs/:id/cancel"',
  },
  replayIsDeduplicated: {
    value: true,
    grade: 'documented',
    source: 'metered jobs contract, idempotency: "same_body: the stored job"',
  },
  dedupeWindowMs: {
    value: DAY_MS,
    grade: 'documented',
    source: 'metered jobs contract, idempotency: "kept_for_hours: 24"',
  },
  retentionMs: {
    value: DAY_MS,
    grade: 'documented',
    source: 'metered jobs contract, lookups: "kept_for_hours: 24"',
  },
  chargeEvidence: {
    value: ['on_lookup'],
    grade: 'documented',
    source: 'metered jobs contract, charge: "GET /v1/jobs/by-key/:key/charge"',
  },
  rejections: {
    value: REJECTED_ON_SUBMIT,
    grade: 'documented',
    source: 'metered jobs contract, refusals: "refused before work", "charged: false"',
  },
  pricedBy: 'provider',
};

interface Client {
  readonly transport: Transport;
  readonly at: (path: string) => URL;
  readonly authorization: string;
}

export function createMeteredJobsProvider(options: MeteredJobsOptions): ProviderPort {
  const { name, baseUrl, apiKey, transport = createTransport() } = options;
  const client: Client = {
    transport,
    at: (path) => joinUrl(baseUrl, path),
    authorization: `Bearer ${apiKey}`,
  };
  return {
    name,
    capabilities: CAPABILITIES,

    async dispatch(request, signal) {
      const http = submitOf(client, request);
      if (http === undefined) return unwritable('the request is no JSON object');
      const answer = await transport.send(http, request, signal);
      if (answer.kind === 'not_sent') return dispatchedUnheard(answer);
      return { kind: 'observed', observation: observeSubmit(answer) } satisfies Dispatched;
    },

    async lookUp(request, signal) {
      const answer = await ask(client, byKey(request), signal);
      return answer.kind === 'response' ? observeStatus(answer, request) : unheard(answer);
    },

    async lookUpCharge(request, signal) {
      const answer = await ask(client, `${byKey(request)}/charge`, signal);
      return answer.kind === 'response' ? observeCharge(answer, request) : unheard(answer);
    },

    cancel: (request, signal) => cancel(client, request, signal),

    // A receipt can be looked up: nothing is gained by sending the create again.
    replay: () => {
      const evidence = { source: 'lookup', reference: 'none' } as const;
      const detail = 'this provider is asked under the key';
      return Promise.resolve(noAnswer({ reason: 'no_answer', detail, evidence }));
    },
  };
}

function byKey({ idempotencyKey }: LookUpRequest): string {
  return `/v1/jobs/by-key/${encodeURIComponent(idempotencyKey)}`;
}

function ask(
  { transport, at, authorization }: Client,
  path: string,
  signal: AbortSignal,
): Promise<HttpResponse | Lost> {
  return transport.ask({ method: 'GET', url: at(path), headers: { authorization } }, signal);
}

/** The bound that was priced is the limit that is sent; `request` is our own count of sends. */
function submitOf(
  { at, authorization }: Client,
  request: DispatchRequest,
): HttpRequest | undefined {
  const input = parseJson(request.requestText);
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return undefined;
  const limit = Object.fromEntries(
    Object.entries(request.bound).filter(([dimension]) => dimension !== 'request'),
  );
  return {
    method: 'POST',
    url: at('/v1/jobs'),
    headers: {
      authorization,
      'content-type': 'application/json',
      'idempotency-key': request.idempotencyKey,
    },
    body: JSON.stringify({ model: request.model, limit, input }),
  };
}

function observeSubmit(answer: HttpResponse | Lost): Observation {
  // It may run, and its id is not known: it is looked for under its key.
  if (answer.kind === 'lost') return { ...unheard(answer), reason: 'handle_lost' };
  const { status } = answer;
  const evidence = describeEvidence('response', answer);
  const detail = `http ${status}`;
  if (status === 200 || status === 202) {
    const created = readCreated(answer);
    if (created !== undefined) {
      const { id: remoteId } = created;
      return {
        kind: 'status',
        status: 'running',
        ...(remoteId !== undefined && { remoteId }),
        evidence,
      };
    }
    return noAnswer({ reason: 'handle_lost', detail: `${detail}, unreadable`, evidence });
  }
  if (REJECTED_ON_SUBMIT.includes(status) && ownErrorCode(answer) !== undefined) {
    return { kind: 'not_accepted', proof: 'documented_rejection', detail, evidence };
  }
  return noAnswer({ reason: 'handle_lost', detail, evidence, response: answer });
}

function observeStatus(response: HttpResponse, request: LookUpRequest): Observation {
  const evidence = describeEvidence('lookup', response);
  if (response.status !== 200) return unfound(response);
  const job = readJob(response);
  if (job === undefined || job.key !== request.idempotencyKey) {
    const detail = job === undefined ? 'the body is no job' : 'the job is of another key';
    return noAnswer({ reason: 'no_answer', detail, evidence, response });
  }
  const remoteId = showableId(job.id);
  return {
    kind: 'status',
    status: job.status,
    ...(remoteId !== undefined && { remoteId }),
    evidence,
  };
}

/** A 404 is "not visible yet" as often as "never arrived", and after its retention it is "forgotten". */
function unfound(response: HttpResponse): Observation {
  const { status } = response;
  const evidence = describeEvidence('lookup', response);
  const reason = status === 404 ? 'not_found' : 'no_answer';
  return noAnswer({ reason, detail: `http ${status}`, evidence, response });
}

function observeCharge(
  response: HttpResponse,
  { idempotencyKey, unit }: LookUpRequest,
): Observation {
  if (response.status !== 200) return unfound(response);
  const evidence = describeEvidence('lookup', response);
  const charge = readCharge(response, unit);
  const silence = (detail: string): Observation =>
    noAnswer({ reason: 'no_answer', detail, evidence, response });
  switch (charge.status) {
    case 'unreadable':
      return silence('the body is no charge');
    case 'inconsistent':
      return noAnswer({ reason: 'inconsistent_usage', detail: charge.detail, evidence, response });
    case 'not_stated':
      return charge.key === idempotencyKey
        ? silence('no charge is stated yet')
        : silence('the charge is of another key');
    case 'stated': {
      if (charge.key !== idempotencyKey) return silence('the charge is of another key');
      const { amount, usage, isFinal } = charge;
      const basis = isFinal ? 'final' : 'lower_bound';
      return { kind: 'charge', basis, amount, usage, evidence };
    }
  }
}

async function cancel(
  client: Client,
  request: LookUpRequest,
  signal: AbortSignal,
): Promise<CancelAnswer> {
  const found = await ask(client, byKey(request), signal);
  if (found.kind === 'lost') return unansweredCancel(found);
  const job = found.status === 200 ? readJob(found) : undefined;
  if (job === undefined || job.key !== request.idempotencyKey) {
    const detail = `not sent: the job is not found under its key (http ${found.status})`;
    return { answer: 'no_answer', detail, evidence: describeEvidence('lookup', found) };
  }
  const { transport, at, authorization } = client;
  const url = at(`/v1/jobs/${encodeURIComponent(job.id)}/cancel`);
  const answer = await transport.ask({ method: 'POST', url, headers: { authorization } }, signal);
  return answer.kind === 'lost' ? unansweredCancel(answer) : readCancelAnswer(answer);
}

function unansweredCancel(lost: Lost): CancelAnswer {
  const { detail, evidence } = unheard(lost);
  return { answer: 'no_answer', detail, evidence };
}

/** A refusal counts only in the provider's own error form: a proxy in between refuses nothing. */
function readCancelAnswer(response: HttpResponse): CancelAnswer {
  const { status } = response;
  const code = ownErrorCode(response);
  const detail = `http ${status}${typeof code === 'string' ? ` ${code}` : ''}`;
  const evidence = describeEvidence('lookup', response);
  if (status === 200 || status === 202) return { answer: 'acknowledged', detail, evidence };
  if (status === 405 && code === 'cancel_unsupported') {
    return { answer: 'unsupported', detail, evidence };
  }
  if (status === 409 && code !== undefined) return { answer: 'refused', detail, evidence };
  return { answer: 'no_answer', detail, evidence };
}
