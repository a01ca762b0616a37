// The whole file, and its JSON Schema for editors.

import { z } from 'zod';
import { expectation } from './expect.js';
import { given, type Given } from './given.js';
import { STEPS, type Step } from './steps.js';
import { count, name, wholeFigure } from './words.js';

const integer = z
  .int({ error: 'give a whole number' })
  .describe('A whole number; --set NAME=N changes it.');

/** Steps are read one by one, each by its own word, so that a mistake is told of that word. */
export const scenarioForm = z.strictObject({
  scenario: name.describe('Its name, which no other file of a run has.'),
  about: z
    .string({ error: 'give one sentence on what it is about' })
    .min(1, { error: 'give one sentence on what it is about' }),
  pending: z
    .string()
    .min(1, { error: 'give the reason' })
    .describe(
      'Why it cannot pass yet: it is not played, shown in every summary, and never counted as passed.',
    )
    .optional(),
  naive: z
    .strictObject({ charged: wholeFigure, admitted: count.optional() })
    .describe('What the control arm ends at.')
    .optional(),
  gateway: z
    .string()
    .min(1, { error: 'give one sentence' })
    .describe('What a gateway ended at by the published record: told, never compared.')
    .optional(),
  numbers: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_]*$/, {
        error: 'give a-z, 0-9 and underscore, the first a letter',
      }),
      integer,
    )
    .describe('Names for formulas.')
    .default({}),
  given,
  steps: z
    .array(z.unknown(), { error: 'give a list of steps' })
    .min(1, { error: 'give at least one step' }),
  expect: expectation.optional(),
});

export interface Scenario {
  readonly file: string;
  readonly name: string;
  readonly about: string;
  readonly pending?: string;
  readonly gateway?: string;
  readonly naive?: {
    readonly charged: z.infer<typeof wholeFigure>;
    readonly admitted?: number | undefined;
  };
  readonly numbers: Readonly<Record<string, number>>;
  readonly given: Given;
  readonly steps: readonly Step[];
  readonly expect?: z.infer<typeof expectation>;
  readonly expectLine: number;
}

/** What editors check while somebody types; draft 7 is what most of them know. */
export function scenarioJsonSchema(): Readonly<Record<string, unknown>> {
  const whole = scenarioForm.extend({
    steps: z.array(z.union(Object.values(STEPS))).min(1),
  });
  return z.toJSONSchema(whole, { io: 'input', target: 'draft-7', reused: 'ref' });
}
