// A scenario as small as can be, with one thing changed, and what is said of it.

import { readScenario } from '../../scenario-runner/language/read-scenario.js';
import { UnusableFile } from '../../scenario-runner/language/unusable.js';

/** Line 5 has the limit, line 6 begins the steps, line 7 is the only step, line 8 expects. */
export const GOOD = `scenario: x
about: y
given:
  budgets:
    b: { limit: 10 }
steps:
  - { call: a }
expect: { admitted: 1 }
`;

export const withLimit = (limit: string): string => GOOD.replace('limit: 10', `limit: ${limit}`);
export const withStep = (step: string): string => GOOD.replace('{ call: a }', step);
export const withExpect = (expected: string): string => GOOD.replace('{ admitted: 1 }', expected);
export const withRule = (rule: string): string =>
  GOOD.replace('steps:', `  provider:\n    - ${rule}\nsteps:`);
export const withNumbers = (numbers: string, limit: string): string =>
  withLimit(limit).replace('about: y', `about: y\nnumbers: ${numbers}`);

/** The whole of what somebody reads. */
export function complaintOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof UnusableFile) return error.message;
    throw error;
  }
  return 'nothing is wrong';
}
export const complaint = (text: string): string => complaintOf(() => readScenario(text, 'f.yaml'));
