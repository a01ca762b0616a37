// Other terms
// -----------
// Somebody asks under an id that is being served, and brings an input of their own. The ledger
// compares the terms, as it does for an id whose supervisor has ended: `key_reused`, never an admission.

import { condition } from '@temporalio/workflow';
import { describeProblems, type LlmCallInput, readLlmCallInput } from '../domain/call-input.js';
import { resultOf } from '../domain/call-result.js';
import type { AdmitVerdict } from './messages.js';
import { placeHold } from './steps.js';
import { admitted, type Supervision } from './supervision.js';

/** The input that came with an asking, where it differs from ours in more than the asking's name. */
export function otherInputOf(request: unknown, own: LlmCallInput): LlmCallInput | undefined {
  if (typeof request !== 'object' || request === null) return undefined;
  const { input } = request as { input?: unknown };
  const read = input === undefined ? undefined : readLlmCallInput(input);
  if (read?.kind !== 'input') return undefined;
  return fingerprint(read.input) === fingerprint(own) ? undefined : read.input;
}

/** All of an input but the names that say who asks, and under which id. */
function fingerprint(input: LlmCallInput): string {
  const terms = Object.entries(input).filter(
    ([name]) => name !== 'askId' && name !== 'operationId',
  );
  return JSON.stringify(terms.sort(([one], [other]) => (one < other ? -1 : 1)));
}

export async function answerOther(
  supervision: Supervision,
  askId: string,
  input: LlmCallInput,
): Promise<AdmitVerdict> {
  const { operationId, workflowId } = supervision;
  await condition(() => supervision.snapshot !== undefined || supervision.verdicts.size > 0);
  // Nothing stands under the id, and this run is about to end: the next one is asked with these terms.
  if (supervision.snapshot === undefined) {
    return { status: 'unavailable', reason: 'an asking with other terms was being answered' };
  }
  const placed = await placeHold({ input, operationId, workflowId, askId });
  switch (placed.kind) {
    case 'admitted':
      return admitted(placed.snapshot);
    case 'closed':
      return { status: 'closed', result: resultOf(placed.snapshot) };
    case 'refused':
      return { status: 'refused', refusal: placed.refusal };
    case 'invalid':
      return { status: 'invalid', message: describeProblems(placed.problems) };
    case 'unavailable':
      return { status: 'unavailable', reason: placed.reason };
  }
}
