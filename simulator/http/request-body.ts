import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ErrorDetail } from './error-form.js';

/** The model of a body that need not be valid. */
export function modelOf(body: unknown): string | null {
  const parsed = z.looseObject({ model: z.string() }).safeParse(body);
  return parsed.success ? parsed.data.model : null;
}

/** Two bodies that differ only in the order of their fields are the same request. */
export function digestOf(body: unknown): string {
  return createHash('sha256').update(canonicalJson(body)).digest('hex');
}

export function explainBody(error: z.ZodError): ErrorDetail {
  const [issue] = error.issues;
  const param = issue?.path.map(String).join('.') ?? '';
  const text = issue?.message ?? 'unreadable';
  return param === ''
    ? { message: `The body is invalid: ${text}.` }
    : { message: `${param}: ${text}.`, param };
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
