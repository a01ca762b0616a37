// Metered provider
// ----------------
// The adapter for the generic HTTP contract of a provider that prices its own work: chat completions that carry
// a charge, and a receipt that can be looked up under the key of the request.

import type { Evidence, Observation } from '../../domain/observation.js';
import {
  describeEvidence,
  dispatchedUnheard,
  joinUrl,
  noAnswer,
  unheard,
  unwritable,
} from '../answers.js';
import { buildChatBody, readChatAnswer } from '../chat-completion.js';
import type {
  Dispatched,
  DispatchRequest,
  LookUpRequest,
  ProviderCapabilities,
  ProviderPort,
} from '../port.js';
import { createTransport, type HttpResponse, type Transport } from '../transport.js';
import { isOwnError, readMoney, readReceipt, type Money, type Receipt } from './metered-answers.js';

export interface MeteredOptions {
  readonly name: string;
  /** Up to where `/v1/chat/completions` begins. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly transport?: Transport;
}

/** "401: refused before work, charged: false. 503: refused before work, charged: false." On a create alone. */
const REJECTED_ON_DISPATCH: readonly number[] = [401, 503];
/** A lookup starts no work, so that no status of it can say that none was started. */
const FOUND_ON_LOOKUP: readonly number[] = [200];

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

export function createMeteredProvider(options: MeteredOptions): ProviderPort {
  const { name, baseUrl, apiKey, transport = createTransport() } = options;
  const authorization = `Bearer ${apiKey}`;
  return {
    name,
    capabilities: CAPABILITIES,

    async dispatch(request, signal) {
      const body = buildChatBody(request);
      if (body === undefined) return unwritable('the request is no JSON object');
      const answer = await transport.send(
        {
          method: 'POST',
          url: joinUrl(baseUrl, '/v1/chat/completions'),
          headers: {
            authorization,
            'content-type': 'application/json',
            'idempotency-key': request.idempotencyKey,
          },
          body,
        },
        request,
        signal,
      );
      return answer.kind === 'response'
        ? observeAnswer(answer, request)
        : dispatchedUnheard(answer);
    },

    async lookUp(request, signal) {
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

function observeAnswer(response: HttpResponse, { unit }: DispatchRequest): Dispatched {
  const { status, text } = response;
  if (status !== 200) return { kind: 'observed', observation: observeRefusal(response) };
  const answer = readChatAnswer(response);
  const { remoteId } = answer;
  const evidence = describeEvidence('response', response, remoteId);
  if (answer.kind === 'unreadable') {
    const { detail } = answer;
    const observation = noAnswer({ reason: 'no_answer', detail, remoteId, evidence, response });
    return { kind: 'observed', observation };
  }
  const money = readMoney(answer, unit);
  const observation =
    money.status === 'exact'
      ? chargeOf(money, { remoteId, evidence })
      : noAnswer({ ...money, remoteId, evidence, response });
  return { kind: 'observed', observation, answer: { text } };
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
  if (money.status === 'exact') return chargeOf(money, { remoteId, evidence });
  if (money.reason === 'terminal_without_charge') {
    return { kind: 'status', status, remoteId, evidence };
  }
  return noAnswer({ ...money, remoteId, evidence, response });
}

interface Source {
  readonly remoteId: string | undefined;
  readonly evidence: Evidence;
}

function chargeOf(money: Extract<Money, { status: 'exact' }>, source: Source): Observation {
  const { amount, usage } = money;
  const { remoteId, evidence } = source;
  const id = remoteId === undefined ? {} : { remoteId };
  return { kind: 'charge', basis: 'final', amount, usage, ...id, evidence };
}
