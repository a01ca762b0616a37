// Chat completion
// ---------------
// The wire format that OpenAI gave to others: the body that asks, and what an answer says, whole or streamed.
//
// Invariants:
//   C1. The limit on the wire is the bound that was priced. A caller's text cannot name another one, nor
//       another model, nor multiply the output.
//   C2. Usage is exact or it is nothing: null is not zero, and what does not add up is not used.
//   C3. A stream counts only when it was read to its closing mark.

import { z } from 'zod';
import type { Usage } from '../domain/observation.js';
import { parseJson } from './answers.js';
import { readEvents } from './server-sent-events.js';
import type { HttpResponse } from './transport.js';

export type LimitField = 'max_tokens' | 'max_completion_tokens';

export interface ChatOrder {
  readonly model: string;
  readonly requestText: string;
  readonly bound: Usage;
  /** The field that this server reads its limit from; `max_tokens` by default. */
  readonly limitField?: LimitField | undefined;
}

/** Fields that decide the model and the price. What the caller wrote there is dropped, whatever its case. */
const OURS: ReadonlySet<string> = new Set([
  'model',
  'max_tokens',
  'max_completion_tokens',
  'n',
  'best_of',
  'service_tier',
  'stream',
  'stream_options',
]);

const objectSchema = z.record(z.string(), z.unknown());

/** The wire text, or undefined where the caller's text is no JSON object. Throws RangeError for an impossible bound. */
export function buildChatBody(order: ChatOrder): string | undefined {
  const parsed = objectSchema.safeParse(parseJson(order.requestText));
  if (!parsed.success) return undefined;
  const entries = Object.entries(parsed.data);
  const isStream = entries.some(([name, value]) => fold(name) === 'stream' && value === true);
  return JSON.stringify({
    ...Object.fromEntries(entries.filter(([name]) => !OURS.has(fold(name)))),
    model: order.model,
    ...limitOf(order),
    ...(isStream && { stream: true, stream_options: { include_usage: true } }),
  });
}

/** As the most lenient server compares names: some match fields whatever their case, with Unicode's folding. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** A bound that was not priced is not sent: only a route on which output costs nothing has none. */
function limitOf({ bound, limitField = 'max_tokens' }: ChatOrder): Record<string, number> {
  const limit = bound['output_tokens'];
  if (limit === undefined) return {};
  if (!Number.isSafeInteger(limit) || limit < 0) {
    throw new RangeError(`output_tokens must be a whole number and not negative, got ${limit}`);
  }
  return { [limitField]: limit };
}

export type ChatAnswer =
  | {
      readonly kind: 'complete';
      readonly remoteId: string | undefined;
      readonly usage: unknown;
      /** Not of the format: what a provider that prices its own answers adds to it. */
      readonly charge: unknown;
    }
  | {
      readonly kind: 'unreadable';
      readonly remoteId?: string | undefined;
      readonly detail: string;
    };

const completionSchema = z.looseObject({
  id: z.string().min(1).nullish(),
  choices: z.array(z.unknown()).min(1),
  error: z.null().optional(),
});

const chunkSchema = z.looseObject({
  id: z.string().nullish(),
  choices: z.array(z.unknown()),
  error: z.null().optional(),
});

/** Reads the body of a 200. */
export function readChatAnswer({ headers, text }: HttpResponse): ChatAnswer {
  const isStream = /^text\/event-stream\b/i.test(headers['content-type'] ?? '');
  return isStream ? readStream(text) : readCompletion(text);
}

function readCompletion(text: string): ChatAnswer {
  const parsed = completionSchema.safeParse(parseJson(text));
  if (!parsed.success) return { kind: 'unreadable', detail: 'the body is no chat completion' };
  const { id, usage, charge } = parsed.data;
  return { kind: 'complete', remoteId: id ?? undefined, usage, charge };
}

function readStream(text: string): ChatAnswer {
  const heard: { remoteId: string | undefined; usage: unknown; charge: unknown } = {
    remoteId: undefined,
    usage: undefined,
    charge: undefined,
  };
  let chunkCount = 0;
  for (const event of readEvents(text)) {
    if (event === '[DONE]') {
      if (chunkCount > 0) return { kind: 'complete', ...heard };
      return { kind: 'unreadable', detail: 'the stream carried no chunk' };
    }
    const parsed = chunkSchema.safeParse(parseJson(event));
    if (!parsed.success) {
      const detail = 'the stream carried something else than a chunk';
      return { kind: 'unreadable', remoteId: heard.remoteId, detail };
    }
    chunkCount += 1;
    const { id, usage, charge } = parsed.data;
    // Some servers count along: each usage is the total so far, so the last one stands.
    heard.remoteId ??= id === '' ? undefined : (id ?? undefined);
    heard.usage = usage ?? heard.usage;
    heard.charge = charge ?? heard.charge;
  }
  return {
    kind: 'unreadable',
    remoteId: heard.remoteId,
    detail: 'the stream ended without its closing mark',
  };
}

export type UsageReading =
  | { readonly status: 'exact'; readonly usage: Usage }
  | { readonly status: 'absent' }
  | { readonly status: 'inconsistent' };

const count = z.int().nonnegative().nullish();
const usageSchema = z.looseObject({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
});

export function readUsage(value: unknown): UsageReading {
  if (value === undefined || value === null) return { status: 'absent' };
  const parsed = usageSchema.safeParse(value);
  if (!parsed.success) return { status: 'inconsistent' };
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = parsed.data;
  if (input == null || output == null || total == null) return { status: 'absent' };
  if (input + output !== total) return { status: 'inconsistent' };
  return { status: 'exact', usage: { request: 1, input_tokens: input, output_tokens: output } };
}
