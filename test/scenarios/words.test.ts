// The runner speaks to the simulator over HTTP and imports nothing of it, so each has its own list of words. A word
// that only one of them knew would be refused in the middle of a play, or could never be told.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  cancelWords,
  lookupWords,
  switchWords,
} from '../../scenario-runner/language/provider-words.js';
import { cancelSchema, lookupSchema, switchesSchema } from '../../simulator/script/switches.js';

type Forms = Readonly<Record<string, unknown>>;

/** What each word accepts, without the sentences that only editors show. */
function formsOf(form: z.ZodType): Forms {
  const { properties } = z.toJSONSchema(form, { io: 'input' });
  return JSON.parse(
    JSON.stringify(properties, (key, value: unknown) =>
      key === 'description' ? undefined : value,
    ),
  ) as Forms;
}

/** `charge` is an amount with a bound of its own there, and `lookup` is compared by itself. */
const LOOSE = ['charge', 'lookup'];

function comparable(forms: Forms): Forms {
  return Object.fromEntries(Object.entries(forms).filter(([word]) => !LOOSE.includes(word)));
}

describe('the words of a provider rule', () => {
  test.each([
    ['do', switchWords, switchesSchema],
    ['lookup', lookupWords, lookupSchema],
    ['cancel', cancelWords, cancelSchema],
  ])('%s: the runner and the simulator know the same words', (_name, ours, theirs) => {
    expect(Object.keys(ours.shape).sort()).toEqual(Object.keys(theirs.shape).sort());
  });

  test.each([
    ['do', switchWords, switchesSchema],
    ['lookup', lookupWords, lookupSchema],
    ['cancel', cancelWords, cancelSchema],
  ])('%s: each word takes the same values', (_name, ours, theirs) => {
    expect(comparable(formsOf(ours))).toEqual(comparable(formsOf(theirs)));
  });

  test.each(['0', '12', '0.5', 7])('both take %j as a charge', (charge) => {
    expect(switchWords.safeParse({ charge }).success).toBe(true);
    expect(switchesSchema.safeParse({ charge }).success).toBe(true);
  });

  test.each(['-1', '1e3', 'many', 1.5, -7])('neither takes %j as a charge', (charge) => {
    expect(switchWords.safeParse({ charge }).success).toBe(false);
    expect(switchesSchema.safeParse({ charge }).success).toBe(false);
  });
});
