// Job answers
// -----------
// What the bodies of the metered jobs contract say: of the work, of its charge, and of a wish to stop.

import { z } from 'zod';
import { type Amount, parseAmount, type Unit } from '../../domain/money.js';
import type { Usage } from '../../domain/observation.js';
import { parseJson } from '../answers.js';
import type { HttpResponse } from '../transport.js';

const jobSchema = z.looseObject({
  id: z.string().min(1),
  key: z.string(),
  status: z.enum(['running', 'completed', 'cancelled', 'failed']),
});
export type Job = z.infer<typeof jobSchema>;

export function readJob({ text }: HttpResponse): Job | undefined {
  return jobSchema.safeParse(parseJson(text)).data;
}

/** An id that no ledger and no list could show is not repeated: the job is found under its key. */
export function showableId(id: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- control characters are exactly what is looked for
  return id.length <= 200 && !/[\u0000-\u001f\u007f]/.test(id) ? id : undefined;
}

const createdSchema = z.looseObject({ id: z.string().optional(), status: z.literal('running') });

/** What was accepted; its key is ours by the request, so that an id is all that it adds. */
export function readCreated({ text }: HttpResponse): { readonly id?: string } | undefined {
  const parsed = createdSchema.safeParse(parseJson(text)).data;
  if (parsed === undefined) return undefined;
  const id = parsed.id === undefined ? undefined : showableId(parsed.id);
  return id === undefined ? {} : { id };
}

const chargeSchema = z.looseObject({
  key: z.string(),
  final: z.boolean(),
  usage: z.looseObject({ ticks: z.int().nonnegative() }).nullish(),
  charge: z.looseObject({ amount: z.string(), unit: z.string() }).nullish(),
});

export type JobCharge =
  | {
      readonly status: 'stated';
      readonly key: string;
      readonly isFinal: boolean;
      readonly amount: Amount;
      readonly usage: Usage;
    }
  | { readonly status: 'not_stated'; readonly key: string }
  | { readonly status: 'inconsistent'; readonly detail: string }
  | { readonly status: 'unreadable' };

/** A charge is exact only beside its usage, and only in the unit of its budget. Null is not zero. */
export function readCharge({ text }: HttpResponse, unit: Unit): JobCharge {
  const parsed = chargeSchema.safeParse(parseJson(text)).data;
  if (parsed === undefined) return { status: 'unreadable' };
  const { key, usage, charge, final: isFinal } = parsed;
  if (usage === null || usage === undefined || charge === null || charge === undefined) {
    return { status: 'not_stated', key };
  }
  if (charge.unit !== unit) {
    return { status: 'inconsistent', detail: `the charge is in ${charge.unit}, not in ${unit}` };
  }
  try {
    const amount = parseAmount(charge.amount, unit);
    return { status: 'stated', key, isFinal, amount, usage: { request: 1, ticks: usage.ticks } };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { status: 'inconsistent', detail: `the charge is no amount in ${unit}` };
  }
}

const errorSchema = z.strictObject({
  error: z.looseObject({
    message: z.string().min(1),
    type: z.string().min(1),
    code: z.string().nullable(),
    param: z.string().nullable(),
  }),
});

/** The code of an error in the provider's own form; null for one without, undefined for any other body. */
export function ownErrorCode({ text }: HttpResponse): string | null | undefined {
  return errorSchema.safeParse(parseJson(text)).data?.error.code;
}
