// Metered provider
// ----------------
// The adapter for the generic HTTP contract of a provider that prices its own work: chat completions that carry
// a charge, and a receipt that can be looked up under the key of the request.

import type { Unit } from '../../domain/money.js';
import type { Evidence, Observation } from '../../domain/observation.js';
import {
  describeEvidence,
  dispatchedUnheard,
  joinUrl,
  noAnswer,
  unheard,
  unwritable,
} from '../answers.js';
import { buildChatBody, type ChatAnswer, readChatAnswer } from '../chat-completion.js';
import type {
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
  type Transport,
} from '../transport.js';
import { isOwnError, readMoney, readReceipt, type Money, type Receipt } from './metered-answers.js';

export interface MeteredOptions {
  readonly name: string;
  /** Up to where `/v1/chat/completions` begins. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /**
   * How a lost answer is asked for: `lookup`, the receipt under the key; `replay`, for a server that has
   * no receipts, the request once more under its key.
   */
  readonly asksBy?: 'lookup' | 'replay';
  readonly transport?: Transport;
}

/** "401: refused before work, charged: false. 503: refused before work, charged: false." On a create alone. */
const REJECTED_ON_DISPATCH: readonly number[] = [401, 503];
/** A lookup starts no work, so that no status of it can say that none was started. */
const FOUND_ON_LOOKUP: readonly number[] = [200];

const NO_OBJECT = 'the request is no JSON object';
const NO_LOOKUP = 'this provider is asked by repeating the request under its key';

const CAPABILITIES: ProviderCapabilities = {
  lookUpByKey: {
    value: 'exact',
    grade: 'documented',
    source: 'metered contract, lookups: "GET /v1/receipts/by-key/:key"',
  },
  cancel: {
    value: 'none',
    grade: 'documented',
    source: 'metered contract: names no way to cancel',
  },
  replayIsDeduplicated: {
    value: true,
    grade: 'documented',
    source: 'metered contract, idempotency: "same_body: the stored answer"',
  },
  dedupeWindowMs: {
    value: 24 * 60 * 60 * 1000,
    grade: 'documented',
    source: 'metered contract, idempotency: "kept_for_hours: 24"',
  },
  retentionMs: {
    value: null,
    grade: 'documented',
    source: 'metered contract: says nothing of how long a receipt is kept',
  },
  chargeEvidence: {
    value: ['in_response', 'on_lookup'],
    grade: 'documented',
    source: 'metered contract: an answer and its receipt state usage and charge',
  },
  rejections: {
    value: REJECTED_ON_DISPATCH,
    grade: 'documented',
    source: 'metered contract, refusals: "refused before work", "charged: false"',
  },
  pricedBy: 'provider',
};

const CAPABILITIES_BY_REPLAY: ProviderCapabilities = {
  ...CAPABILITIES,
  lookUpByKey: { value: 'none', grade: 'documented', source: NO_LOOKUP },
  chargeEvidence: {
    value: ['in_response'],
    grade: 'documented',
    source: 'metered contract: an answer states usage and charge',
  },
};

export function createMeteredProvider(options: MeteredOptions): ProviderPort {
  const { name, baseUrl, apiKey, asksBy = 'lookup', transport = createTransport() } = options;
  const authorization = `Bearer ${apiKey}`;
  /** Undefined where the request cannot be written. The same for a dispatch and its replay, byte for byte. */
  const create = (request: DispatchRequest): HttpRequest | undefined => {
    const body = buildChatBody(request);
    if (body === undefined) return undefined;
    return {
      method: 'POST',
      url: joinUrl(baseUrl, '/v1/chat/completions'),
      headers: {
        authorization,
        'content-type': 'application/json',
        'idempotency-key': request.idempotencyKey,
      },
      body,
    };
  };
  return {
    name,
    capabilities: asksBy === 'replay' ? CAPABILITIES_BY_REPLAY : CAPABILITIES,

    async dispatch(request, signal) {
      const http = create(request);
      if (http === undefined) return unwritable(NO_OBJECT);
      const answer = await transport.send(http, request, signal);
      return answer.kind === 'response'
        ? observeAnswer(answer, request)
        : dispatchedUnheard(answer);
    },

    async replay(request, signal) {
      const http = create(request);
      if (http === undefined) return unheard({ kind: 'lost', detail: NO_OBJECT });
      const answer = await transport.send(http, request, signal);
      if (answer.kind === 'response') return observeReplay(answer, request);
      // That the repeat did not leave says nothing of the send that it asks about.
      return unheard(answer.kind === 'lost' ? answer : { kind: 'lost', detail: answer.detail });
    },

    async lookUp(request, signal) {
      if (asksBy === 'replay') {
        const evidence = { source: 'lookup', reference: 'none' } as const;
        return noAnswer({ reason: 'no_answer', detail: NO_LOOKUP, evidence });
      }
      const path = `/v1/receipts/by-key/${encodeURIComponent(request.idempotencyKey)}`;
      const url = joinUrl(baseUrl, path);
      const answer = await transport.ask(
        { method: 'GET', url, headers: { authorization } },
        signal,
      );
      return answer.kind === 'response' ? observeReceipt(answer, request) : unheard(answer);
    },
  };
}

function observeAnswer(response: HttpResponse, request: DispatchRequest): Dispatched {
  const { status, text } = response;
  if (status !== 200) return { kind: 'observed', observation: observeRefusal(response) };
  const answer = readChatAnswer(response);
  const observation = observeCompletion(answer, response, { source: 'response', ...request });
  if (answer.kind === 'unreadable') return { kind: 'observed', observation };
  return { kind: 'observed', observation, answer: { text } };
}

/** A stored answer is read as the first one is; any other status is no answer, also one that would refuse a create. */
function observeReplay(response: HttpResponse, request: DispatchRequest): Observation {
  const { status } = response;
  if (status !== 200) {
    const evidence = describeEvidence('lookup', response);
    return noAnswer({ reason: 'no_answer', detail: `http ${status}`, evidence, response });
  }
  return observeCompletion(readChatAnswer(response), response, { source: 'lookup', ...request });
}

function observeCompletion(
  answer: ChatAnswer,
  response: HttpResponse,
  { source, unit }: { readonly source: 'response' | 'lookup'; readonly unit: Unit },
): Observation {
  const { remoteId } = answer;
  const evidence = describeEvidence(source, response, remoteId);
  if (answer.kind === 'unreadable') {
    const { detail } = answer;
    return noAnswer({ reason: 'no_answer', detail, remoteId, evidence, response });
  }
  const money = readMoney(answer, unit);
  if (money.status === 'exact') {
    return chargeOf(money, { remoteId, evidence, execution: 'completed' });
  }
  return noAnswer({ ...money, remoteId, evidence, response });
}

function observeRefusal(response: HttpResponse): Observation {
  const { status } = response;
  const evidence = describeEvidence('response', response);
  const detail = `http ${status}`;
  if (REJECTED_ON_DISPATCH.includes(status) && isOwnError(response)) {
    return { kind: 'not_accepted', proof: 'documented_rejection', detail, evidence };
  }
  return noAnswer({ reason: 'no_answer', detail, evidence, response });
}

function observeReceipt(response: HttpResponse, request: LookUpRequest): Observation {
  const { status } = response;
  const silence = { evidence: describeEvidence('lookup', response), response };
  if (!FOUND_ON_LOOKUP.includes(status)) {
    // A 404 is "not visible yet" as often as "never arrived".
    const reason = status === 404 ? 'not_found' : 'no_answer';
    return noAnswer({ reason, detail: `http ${status}`, ...silence });
  }
  const receipt = readReceipt(response);
  if (receipt === undefined) {
    return noAnswer({ reason: 'no_answer', detail: 'the body is no receipt', ...silence });
  }
  if (receipt.key !== request.idempotencyKey) {
    return noAnswer({ reason: 'no_answer', detail: 'the receipt is of another key', ...silence });
  }
  return observeFound(receipt, response, request);
}

function observeFound(
  receipt: Receipt,
  response: HttpResponse,
  { unit }: LookUpRequest,
): Observation {
  const { id: remoteId, status } = receipt;
  const evidence = describeEvidence('lookup', response, remoteId);
  if (status === 'running') return { kind: 'status', status, remoteId, evidence };
  const money = readMoney(receipt, unit);
  if (money.status === 'exact') {
    return chargeOf(money, { remoteId, evidence, execution: status });
  }
  if (money.reason === 'terminal_without_charge') {
    return { kind: 'status', status, remoteId, evidence };
  }
  return noAnswer({ ...money, remoteId, evidence, response });
}

interface Source {
  readonly remoteId: string | undefined;
  readonly evidence: Evidence;
  readonly execution: 'completed' | 'failed';
}

function chargeOf(money: Extract<Money, { status: 'exact' }>, source: Source): Observation {
  const { amount, usage } = money;
  const { remoteId, evidence, execution } = source;
  const id = remoteId === undefined ? {} : { remoteId };
  return { kind: 'charge', basis: 'final', amount, usage, execution, ...id, evidence };
}
