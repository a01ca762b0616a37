// The figures a scenario must show, between its steps and at its end. What is not named is not
// compared; an expectation that names nothing is refused.

import { z } from 'zod';
import {
  alertKind,
  byEvent,
  byOutcome,
  byReason,
  byRefusal,
  outcome,
  phase,
  proof,
  stopStatus,
  unknownReason,
} from './ledger-words.js';
import { count, duration, figure, name, signedFigure, wholeFigure } from './words.js';

const taskFigures = z.strictObject({
  status: z.enum(['running', 'answered', 'finished', 'refused']).optional(),
  steps: z
    .record(name, z.enum(['waiting', 'started', 'answered', 'ended', 'skipped', 'invalid']))
    .optional(),
  stops: z
    .record(name, z.union([z.literal('none'), stopStatus]))
    .describe('What the report says of each step once a stop is wanted.')
    .optional(),
  charged: z
    .record(name, z.union([z.literal('unknown'), figure]))
    .describe('What the report says that each step was charged.')
    .optional(),
  temporal: z.enum(['RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED']).optional(),
});
export type TaskFigures = z.infer<typeof taskFigures>;

const budgetFigures = z.strictObject({
  limit: figure.optional(),
  captured: figure.optional(),
  held: figure.optional(),
  available: signedFigure.optional(),
  unknown: figure.optional(),
  overrun: figure.optional(),
});

const callFigures = z.strictObject({
  state: z.enum(['none', 'held', 'dispatched', 'unknown', 'settled', 'released']).optional(),
  outcome: outcome.optional(),
  execution: z
    .enum(['not_started', 'running', 'completed', 'cancelled', 'failed', 'unknown'])
    .optional(),
  cancel: z
    .enum([
      'none',
      'requested',
      'acknowledged',
      'confirmed_stopped',
      'refused',
      'unsupported',
      'not_honoured',
    ])
    .optional(),
  charged: z
    .union([z.literal('unknown'), figure], {
      error: 'give a whole number, a decimal or formula in quotes, or unknown',
    })
    .describe('The sum over its attempts; unknown while nothing is confirmed.')
    .optional(),
  held: figure.optional(),
  floor: figure.optional(),
  attempts: count.optional(),
  route: name.describe('Of the newest attempt.').optional(),
  phases: z.array(phase).describe('Of each attempt, in order.').optional(),
  proof: proof.optional(),
  priced_by: z.enum(['provider', 'price_book']).optional(),
  reasons: z
    .array(unknownReason)
    .describe('Each must be among the reasons for being unknown.')
    .optional(),
  unknown_for_at_least: duration.optional(),
  questions_at_least: count.optional(),
  received: count.describe('Requests that the provider received under its keys.').optional(),
  provider_charged: figure.describe("By the provider's own book.").optional(),
  events: byEvent(count).describe('How many events of each kind its journal has.').optional(),
  temporal: z
    .enum(['none', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED'])
    .optional(),
  attributes: z
    .record(
      z.string(),
      z.union([z.string(), z.int(), z.boolean()], {
        error: 'give text, a whole number, true or false',
      }),
    )
    .describe('Search attributes in Temporal.')
    .optional(),
  explains: z.string().describe('What the explanation of the call must contain.').optional(),
  stop: stopStatus
    .describe('What is said of a wish to stop it, by the one function that may say it.')
    .optional(),
  alerts: z.array(alertKind).describe('Each must have been raised, and no other.').optional(),
  needs_operator: z.boolean().optional(),
  cancels: count.describe('Wishes to stop that the provider received for it.').optional(),
  remote: z
    .enum(['none', 'running', 'completed', 'cancelled', 'failed'])
    .describe("What became of the work, by the provider's own book.")
    .optional(),
  supervisor: z.enum(['alive', 'paused', 'missing', 'stuck']).optional(),
  history_at_most: count.describe("Events in the history of the supervisor's run.").optional(),
});
export type CallFigures = z.infer<typeof callFigures>;

export const expectation = z.strictObject({
  budgets: z.record(name, budgetFigures).optional(),
  calls: z.record(name, callFigures).optional(),
  tasks: z.record(name, taskFigures).optional(),
  provider: z
    .strictObject({
      received: count.optional(),
      accepted: count.optional(),
      cancels: count.describe('Wishes to stop that it received.').optional(),
      charged: wholeFigure.optional(),
    })
    .optional(),
  admitted: count.describe('Over all calls heard so far.').optional(),
  refused: z
    .union([count, byReason(count)], {
      error: 'give a whole number, or a mapping from reason to number',
    })
    .describe('Over all calls heard so far: how many, or how many for each reason.')
    .optional(),
  outcomes: byOutcome(count).describe('How many calls ended so, whichever they are.').optional(),
  refusals: byRefusal(
    z.strictObject({
      count: count.optional(),
      needed: figure.optional(),
      available: signedFigure.optional(),
      held: figure.optional(),
      unknown: figure.optional(),
    }),
  )
    .describe('What the ledger recorded of refusals, by reason: how many, and the numbers of each.')
    .optional(),
  unmatched_reports: count
    .describe('Reports that belong to no attempt that the ledger knows.')
    .optional(),
  excess: wholeFigure
    .describe(
      'At the end of the file only: what was charged above stated bounds, or corrected upward after a final total.',
    )
    .optional(),
});
export type Expectation = z.infer<typeof expectation>;
