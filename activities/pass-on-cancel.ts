// Pass on a cancel
// ----------------
// A wish that was stored is sent, and sent again until the provider answers. The answer is recorded
// for what it is: of the asking, not of the work.

import { isEnded } from '../domain/operation.js';
import type { AttemptSnapshot, OperationSnapshot } from '../domain/snapshot.js';
import { recordCancelAnswer } from '../ledger/fence.js';
import type { CancelAnswer, ProviderPort } from '../providers/port.js';
import type { ActivityDependencies } from './dependencies.js';
import { questionSignal } from './question.js';

const UNSUPPORTED: CancelAnswer = {
  answer: 'unsupported',
  detail: 'this provider names no way to cancel',
  evidence: { source: 'transport', reference: 'capability' },
};

/** Undefined where no wish is to be sent. */
export async function passOnCancel(
  { ledger, telemetry }: ActivityDependencies,
  provider: ProviderPort,
  about: { readonly operation: OperationSnapshot; readonly attempt: AttemptSnapshot },
): Promise<OperationSnapshot | undefined> {
  const { operation, attempt } = about;
  if (operation.cancel !== 'requested' || isEnded(attempt.phase)) return undefined;
  const { attemptKey: idempotencyKey, unit, remoteId, attemptNo } = attempt;
  const request = { idempotencyKey, unit, ...(remoteId !== null && { remoteId }) };
  const answered = (await provider.cancel?.(request, questionSignal())) ?? UNSUPPORTED;
  telemetry.lookedUp({ provider: provider.name, kind: 'cancel', answer: answered.answer });
  const { operationKey } = operation;
  const recorded = await recordCancelAnswer(ledger, { operationKey, attemptNo, ...answered });
  return recorded.snapshot ?? undefined;
}
