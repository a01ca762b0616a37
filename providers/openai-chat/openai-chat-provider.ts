// OpenAI chat provider
// --------------------
// The adapter for any server that speaks POST /v1/chat/completions. Its answer states usage, which our price book
// prices, and nothing can be asked afterwards: what was not heard in the answer stays unknown.

import { z } from 'zod';
import type { Observation } from '../../domain/observation.js';
import {
  describeEvidence,
  dispatchedUnheard,
  joinUrl,
  noAnswer,
  parseJson,
  unwritable,
} from '../answers.js';
import { buildChatBody, readChatAnswer, readUsage, type LimitField } from '../chat-completion.js';
import type { Dispatched, ProviderCapabilities, ProviderPort } from '../port.js';
import { createTransport, type HttpResponse, type Transport } from '../transport.js';

export interface OpenAiChatOptions {
  readonly name: string;
  /** Up to and including `/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** The header that carries the API key; `authorization`, as a bearer token, by default. */
  readonly keyHeader?: string;
  readonly limitField?: LimitField;
  /**
   * Whether the address is the vendor's own. A vendor answers some errors before it starts any work, and that was
   * observed, so such an answer frees the hold. A gateway answers with the same statuses in the same form after it
   * has tried, and paid, an upstream of its own; only who configures the address knows which it is, so that without
   * this no answer proves that nothing was charged.
   */
  readonly direct?: boolean;
  readonly transport?: Transport;
}

/** On a dispatch to the vendor itself. There is no lookup, and so no list for one. */
const REJECTED_ON_DISPATCH: readonly number[] = [400, 401, 403, 404, 413, 429];

const NO_LOOKUP = 'chat completions cannot be looked up by key';
const NO_DEDUPE = 'OpenAI API reference, Chat Completions: names no key that dedupes';

export function createOpenAiChatProvider(options: OpenAiChatOptions): ProviderPort {
  const { name, baseUrl, limitField, direct = false, transport = createTransport() } = options;
  const capabilities = describeCapabilities(direct);
  const credential = credentialOf(options);
  return {
    name,
    capabilities,

    async dispatch(request, signal) {
      const body = buildChatBody({ ...request, limitField });
      if (body === undefined) return unwritable('the request is no JSON object');
      const { idempotencyKey } = request;
      const answer = await transport.send(
        {
          method: 'POST',
          url: joinUrl(baseUrl, '/chat/completions'),
          headers: {
            ...credential,
            'content-type': 'application/json',
            'idempotency-key': idempotencyKey,
            'x-client-request-id': idempotencyKey,
          },
          body,
        },
        request,
        signal,
      );
      if (answer.kind !== 'response') return dispatchedUnheard(answer);
      return observeAnswer(answer, capabilities.rejections.value);
    },

    lookUp: () => Promise.resolve(unasked(NO_LOOKUP)),
    // No key is told apart there: a repeat would be a second purchase, and so none is sent.
    replay: () => Promise.resolve(unasked(NO_DEDUPE)),
  };
}

function unasked(detail: string): Observation {
  const evidence = { source: 'lookup', reference: 'none' } as const;
  return noAnswer({ reason: 'no_answer', detail, evidence });
}

function credentialOf({ apiKey, keyHeader }: OpenAiChatOptions): Record<string, string> {
  if (apiKey === undefined) return {};
  return keyHeader === undefined
    ? { authorization: `Bearer ${apiKey}` }
    : { [keyHeader.toLowerCase()]: apiKey };
}

function describeCapabilities(isDirect: boolean): ProviderCapabilities {
  return {
    lookUpByKey: { value: 'none', grade: 'documented', source: NO_LOOKUP },
    cancel: {
      value: 'none',
      grade: 'documented',
      source: 'OpenAI API reference, Chat Completions: names no way to cancel',
    },
    replayIsDeduplicated: { value: false, grade: 'documented', source: NO_DEDUPE },
    dedupeWindowMs: { value: 0, grade: 'documented', source: NO_DEDUPE },
    retentionMs: {
      value: null,
      grade: 'documented',
      source: NO_LOOKUP,
    },
    chargeEvidence: {
      value: ['in_response'],
      grade: 'documented',
      source: 'OpenAI API reference, Chat Completions: `usage`, and `stream_options.include_usage`',
    },
    rejections: isDirect
      ? {
          value: REJECTED_ON_DISPATCH,
          grade: 'observed',
          source: 'no published sentence; compare the releases with the usage reports',
        }
      : { value: [], grade: 'assumed', source: 'a gateway may have paid an upstream before' },
    pricedBy: 'price_book',
  };
}

function observeAnswer(response: HttpResponse, rejections: readonly number[]): Dispatched {
  if (response.status !== 200) {
    return { kind: 'observed', observation: observeRefusal(response, rejections) };
  }
  const answer = readChatAnswer(response);
  const { remoteId } = answer;
  const evidence = describeEvidence('response', response, remoteId);
  if (answer.kind === 'complete') {
    const observation = observeUsage(answer.usage, response, remoteId);
    return { kind: 'observed', observation, answer: { text: response.text } };
  }
  const { detail } = answer;
  const observation = noAnswer({ reason: 'no_answer', detail, remoteId, evidence, response });
  return { kind: 'observed', observation };
}

function observeUsage(
  stated: unknown,
  response: HttpResponse,
  remoteId: string | undefined,
): Observation {
  const reading = readUsage(stated);
  const evidence = describeEvidence('response', response, remoteId);
  const silence = { remoteId, evidence, response };
  if (reading.status === 'absent') {
    const detail = 'no usage was stated';
    return noAnswer({ reason: 'terminal_without_charge', detail, ...silence });
  }
  // Usage is all that this charge is computed from, and no prompt has no tokens.
  if (reading.status === 'inconsistent' || reading.usage['input_tokens'] === 0) {
    const detail = 'the usage contradicts itself or the work';
    return noAnswer({ reason: 'inconsistent_usage', detail, ...silence });
  }
  const id = remoteId === undefined ? {} : { remoteId };
  const { usage } = reading;
  return { kind: 'charge', basis: 'final', usage, execution: 'completed', ...id, evidence };
}

/** Nothing may stand beside the error: a body that also states work or money is not a refusal. */
const errorSchema = z.strictObject({
  error: z.looseObject({
    message: z.string().min(1),
    type: z.string().nullish(),
    code: z.union([z.string(), z.number()]).nullish(),
    param: z.string().nullish(),
  }),
});

function observeRefusal(response: HttpResponse, rejections: readonly number[]): Observation {
  const { status, text } = response;
  const evidence = describeEvidence('response', response);
  const detail = `http ${status}`;
  if (rejections.includes(status) && errorSchema.safeParse(parseJson(text)).success) {
    return { kind: 'not_accepted', proof: 'documented_rejection', detail, evidence };
  }
  return noAnswer({ reason: 'no_answer', detail, evidence, response });
}
