// What GET /truth answers, as facts. A part of a credit counts as a whole one: the ledger has no parts, and a
// judge that rounded down would excuse what is missing.

import { z } from 'zod';
import type { Micros, OracleTruth } from './facts.js';

const time = z.iso.datetime().transform((text): Micros => Date.parse(text) * 1_000);
const credits = z
  .string()
  .regex(/^\d+(\.\d+)?$/)
  .transform((text) => {
    const [whole = '0', part = ''] = text.split('.');
    return BigInt(whole) + (/[1-9]/.test(part) ? 1n : 0n);
  });
const key = z.string().nullable();

const schema = z.object({
  requests: z.array(
    z.object({
      seq: z.int(),
      key,
      outcome: z.enum(['accepted', 'refused', 'dropped_before_reading', 'replayed']),
      receivedRealAt: time,
      realAt: time,
      bill: credits.nullable(),
      state: z.enum(['running', 'completed', 'cancelled', 'failed']).nullable(),
      answered: z.object({ realAt: time, status: z.int() }).nullable(),
    }),
  ),
  charges: z.array(
    z.object({
      seq: z.int(),
      key,
      realAt: time,
      total: credits,
      cause: z.enum(['accept', 'answer', 'finish', 'tick', 'correction']),
    }),
  ),
  reports: z.array(
    z.object({
      key,
      realAt: time,
      status: z.string(),
      charge: credits.nullable(),
      final: z.boolean(),
    }),
  ),
});

/** Only what began after the request `fromSeq`; reports are told apart by their keys, which never come twice. */
export function readTruth(answer: unknown, fromSeq = 0): OracleTruth {
  const truth = schema.parse(answer);
  const isOfRun = ({ seq }: { readonly seq: number }): boolean => seq > fromSeq;
  return {
    requests: truth.requests
      .filter(isOfRun)
      .map(({ receivedRealAt, realAt, answered, state, ...rest }) => ({
        ...rest,
        isRunning: state === 'running',
        receivedAt: receivedRealAt,
        decidedAt: realAt,
        answered: answered === null ? null : { at: answered.realAt, status: answered.status },
      })),
    charges: truth.charges.filter(isOfRun).map(({ realAt, ...rest }) => ({ ...rest, at: realAt })),
    reports: truth.reports.map(({ realAt, ...rest }) => ({ ...rest, at: realAt })),
  };
}
