// Metered answers
// ---------------
// What the metered contract's bodies say of money, and which errors are the provider's own.

import { z } from 'zod';
import type { Amount, Unit } from '../../domain/money.js';
import { parseAmount } from '../../domain/money.js';
import type { UnknownReason, Usage } from '../../domain/observation.js';
import { parseJson } from '../answers.js';
import { readUsage } from '../chat-completion.js';
import type { HttpResponse } from '../transport.js';

export type Money =
  | { readonly status: 'exact'; readonly amount: Amount; readonly usage: Usage }
  | { readonly status: 'inexact'; readonly reason: UnknownReason; readonly detail: string };

const chargeSchema = z.looseObject({ amount: z.string(), unit: z.string() });

/** A charge is final only beside exact usage: an answer that contradicts itself settles nothing. */
export function readMoney(
  stated: { readonly usage?: unknown; readonly charge?: unknown },
  unit: Unit,
): Money {
  const usage = readUsage(stated.usage);
  if (usage.status === 'inconsistent') return inconsistent('the usage contradicts itself');
  const charge = readCharge(stated.charge, unit);
  if (charge === 'inconsistent') return inconsistent(`the charge is no amount in ${unit}`);
  if (usage.status === 'absent') return missing('no usage was stated');
  if (charge === 'absent') return missing('no charge was stated');
  return { status: 'exact', amount: charge, usage: usage.usage };
}

function readCharge(value: unknown, unit: Unit): Amount | 'absent' | 'inconsistent' {
  if (value === undefined || value === null) return 'absent';
  const parsed = chargeSchema.safeParse(value);
  if (!parsed.success || parsed.data.unit !== unit) return 'inconsistent';
  try {
    return parseAmount(parsed.data.amount, unit);
  } catch (error) {
    if (error instanceof RangeError) return 'inconsistent';
    throw error;
  }
}

function inconsistent(detail: string): Money {
  return { status: 'inexact', reason: 'inconsistent_usage', detail };
}

function missing(detail: string): Money {
  return { status: 'inexact', reason: 'terminal_without_charge', detail };
}

const receiptSchema = z.looseObject({
  id: z.string().min(1),
  key: z.string(),
  status: z.enum(['running', 'completed', 'failed']),
  usage: z.unknown().optional(),
  charge: z.unknown().optional(),
});

export type Receipt = z.infer<typeof receiptSchema>;

export function readReceipt({ text }: HttpResponse): Receipt | undefined {
  return receiptSchema.safeParse(parseJson(text)).data;
}

/** Nothing may stand beside the error: a body that also states work or money is not a refusal. */
const errorSchema = z.strictObject({
  error: z.looseObject({
    message: z.string().min(1),
    type: z.string().min(1),
    code: z.string().nullable(),
    param: z.string().nullable(),
  }),
});

export function isOwnError({ text }: HttpResponse): boolean {
  return errorSchema.safeParse(parseJson(text)).success;
}
