import { z } from 'zod';
import type { ErrorDetail } from '../error-form.js';
import { digestOf, explainBody } from '../request-body.js';

const requestSchema = z.looseObject({
  model: z.string().min(1),
  limit: z.looseObject({ ticks: z.int().positive() }),
  input: z.looseObject({}).optional(),
});

export type JobRequest = {
  readonly model: string;
  readonly limitTicks: number;
  readonly digest: string;
};

export type JobRequestRead =
  | { readonly status: 'read'; readonly request: JobRequest }
  | { readonly status: 'invalid'; readonly detail: ErrorDetail };

export function readJobRequest(body: unknown): JobRequestRead {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return { status: 'invalid', detail: explainBody(parsed.error) };
  const { model, limit } = parsed.data;
  return { status: 'read', request: { model, limitTicks: limit.ticks, digest: digestOf(body) } };
}
