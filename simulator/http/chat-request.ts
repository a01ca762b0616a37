import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ErrorDetail } from './error-form.js';

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
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const param = issue?.path.map(String).join('.') ?? '';
    const text = issue?.message ?? 'unreadable';
    return invalid(param, param === '' ? `The body is invalid: ${text}.` : `${param}: ${text}.`);
  }
  const { model, messages, stream, stream_options: streamOptions } = parsed.data;
  const maxTokens = parsed.data.max_completion_tokens ?? parsed.data.max_tokens;
  if (maxTokens === undefined || maxTokens === null) {
    return invalid('max_tokens', 'max_tokens or max_completion_tokens is required.');
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

/** The model of a body that need not be valid. */
export function modelOf(body: unknown): string | null {
  const parsed = z.looseObject({ model: z.string() }).safeParse(body);
  return parsed.success ? parsed.data.model : null;
}

function invalid(param: string, message: string): ChatRequestRead {
  return { status: 'invalid', detail: { message, ...(param === '' ? {} : { param }) } };
}

function countBytes(content: unknown): number {
  if (content === undefined || content === null) return 0;
  return Buffer.byteLength(typeof content === 'string' ? content : JSON.stringify(content));
}

/** Two bodies that differ only in the order of their fields are the same request. */
function digestOf(body: unknown): string {
  return createHash('sha256').update(canonicalJson(body)).digest('hex');
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
