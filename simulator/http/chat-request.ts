import { z } from 'zod';
import type { ErrorDetail } from './error-form.js';
import { digestOf, explainBody } from './request-body.js';

const requestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z
    .array(z.looseObject({ role: z.string().min(1), content: z.unknown().optional() }))
    .min(1),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});

export type ChatRequest = {
  readonly model: string;
  readonly maxTokens: number;
  readonly promptTokens: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly digest: string;
};

export type ChatRequestRead =
  | { readonly status: 'read'; readonly request: ChatRequest }
  | { readonly status: 'invalid'; readonly detail: ErrorDetail };

export function readChatRequest(body: unknown): ChatRequestRead {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return { status: 'invalid', detail: explainBody(parsed.error) };
  const { model, messages, stream, stream_options: streamOptions } = parsed.data;
  const maxTokens = parsed.data.max_completion_tokens ?? parsed.data.max_tokens;
  if (maxTokens === undefined || maxTokens === null) {
    const message = 'max_tokens or max_completion_tokens is required.';
    return { status: 'invalid', detail: { message, param: 'max_tokens' } };
  }
  const byteCount = messages.reduce((sum, { content }) => sum + countBytes(content), 0);
  return {
    status: 'read',
    request: {
      model,
      maxTokens,
      promptTokens: Math.ceil(byteCount / 4),
      stream: stream === true,
      includeUsage: streamOptions?.include_usage === true,
      digest: digestOf(body),
    },
  };
}

function countBytes(content: unknown): number {
  if (content === undefined || content === null) return 0;
  return Buffer.byteLength(typeof content === 'string' ? content : JSON.stringify(content));
}
