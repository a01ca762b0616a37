// Other terms
// -----------
// Somebody asks under an id that is being served, and brings an input of their own. The ledger
// compares the terms, as it does for an id whose supervisor has ended: `key_reused`, never a second
// admission. Where everything under the id was withdrawn it is admitted anew, and this supervisor
// takes it over: a hold never stands without one.

import { condition } from '@temporalio/workflow';
import type { Asked } from '../activities/contract.js';
import { readLlmCallInput } from '../domain/call-input.js';
import { describeProblems } from '../domain/input-fields.js';
import { readRemoteJobInput } from '../domain/job-input.js';
import { resultOf } from '../domain/operation-result.js';
import type { AdmitVerdict } from './messages.js';
import { placeHold } from './steps.js';
import { admitted, type Supervision } from './supervision.js';

/** The input that came with an asking, where it differs from ours in more than the asking's name. */
export function otherAskedOf(request: unknown, { kind, asked }: Supervision): Asked | undefined {
  if (typeof request !== 'object' || request === null) return undefined;
  const { input } = request as { input?: unknown };
  if (input === undefined) return undefined;
  const other = readAsked(kind, input);
  if (other === undefined) return undefined;
  const isOurs = asked !== undefined && fingerprint(other) === fingerprint(asked);
  return isOurs ? undefined : other;
}

function readAsked(kind: Supervision['kind'], raw: unknown): Asked | undefined {
  if (kind === 'call') {
    const read = readLlmCallInput(raw);
    return read.kind === 'input' ? { kind, input: read.input } : undefined;
  }
  const read = readRemoteJobInput(raw);
  return read.kind === 'input' ? { kind, input: read.input } : undefined;
}

/** All of an input but the names that say who asks, and under which id. */
function fingerprint({ input }: Asked): string {
  const terms = Object.entries(input).filter(
    ([name]) => name !== 'askId' && name !== 'operationId',
  );
  return JSON.stringify(terms.sort(([one], [other]) => (one < other ? -1 : 1)));
}

export async function answerOther(
  supervision: Supervision,
  askId: string,
  other: Asked,
): Promise<AdmitVerdict> {
  const { operationId, workflowId } = supervision;
  await condition(() => supervision.snapshot !== undefined || supervision.verdicts.size > 0);
  // Nothing stands under the id, and this run is about to end: the next one is asked with these terms.
  if (supervision.snapshot === undefined) {
    return { status: 'unavailable', reason: 'an asking with other terms was being answered' };
  }
  const placed = await placeHold({ ...other, operationId, workflowId, askId });
  switch (placed.kind) {
    case 'admitted':
      takeOver(supervision, { asked: other, askId, snapshot: placed.snapshot });
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

/** Its newest attempt is this asking's own and was not sent: whoever supervises sends it. */
function takeOver(
  supervision: Supervision,
  anew: { asked: Asked; askId: string; snapshot: NonNullable<Supervision['snapshot']> },
): void {
  const { asked, askId, snapshot } = anew;
  supervision.asked = asked;
  if (supervision.snapshot?.outcome === null) return;
  supervision.asks.unshift(askId);
  supervision.result = undefined;
  supervision.snapshot = snapshot;
}
