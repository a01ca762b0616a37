// Question
// --------
// What is asked about one attempt: status and charge, in one receipt or apart. Where nothing can be
// looked up but keys are documented to be told apart, the question is the same request once more,
// under its key.

import { uptime } from 'node:os';
import { Context } from '@temporalio/activity';
import { combineAnswers } from '../domain/combine-answers.js';
import { decodeAmount } from '../domain/money.js';
import type { Observation } from '../domain/observation.js';
import type { AttemptSnapshot, OperationSnapshot } from '../domain/snapshot.js';
import { replayTerms } from '../ledger/replay.js';
import type { ProviderPort } from '../providers/port.js';
import type { ActivityDependencies } from './dependencies.js';
import { answerOf } from './telemetry.js';

/** Longer than any sane answer to a question, in milliseconds. */
const QUESTION_LIMIT_MS = 10_000;

export type Asked = Pick<
  AttemptSnapshot,
  'attemptNo' | 'attemptKey' | 'unit' | 'remoteId' | 'floorAmount' | 'sentMs'
> &
  Pick<OperationSnapshot, 'operationKey'>;

/** What was answered, to be recorded in this order; nothing where nothing can be asked now. */
export async function question(
  dependencies: ActivityDependencies,
  provider: ProviderPort,
  asked: Asked,
): Promise<readonly Observation[]> {
  const { lookUpByKey } = provider.capabilities;
  if (lookUpByKey.value === 'none') return replay(dependencies, provider, asked);
  const { attemptKey: idempotencyKey, unit, remoteId } = asked;
  const request = { idempotencyKey, unit, ...(remoteId !== null && { remoteId }) };
  const { telemetry } = dependencies;
  const count = (kind: 'receipt' | 'status' | 'charge', observation: Observation): Observation => {
    telemetry.lookedUp({ provider: provider.name, kind, answer: answerOf(observation) });
    return observation;
  };
  const lookUp = async (): Promise<Observation> => {
    const observation = await provider.lookUp(request, questionSignal());
    return count(provider.lookUpCharge === undefined ? 'receipt' : 'status', observation);
  };
  const status = inTime(await lookUp(), provider, asked);
  if (provider.lookUpCharge === undefined) return [status];
  const charge = count('charge', await provider.lookUpCharge(request, questionSignal()));
  // It ended between the two questions: how it ended is asked before the charge closes the books.
  const isOutdated =
    charge.kind === 'charge' &&
    charge.basis === 'final' &&
    status.kind === 'status' &&
    (status.status === 'running' || status.status === 'not_started');
  const newest = isOutdated ? await lookUp() : status;
  return combineAnswers(newest, charge, decodeAmount(asked.floorAmount));
}

/** What is not found after its retention is forgotten, which no further question will mend. */
function inTime(status: Observation, { capabilities }: ProviderPort, asked: Asked): Observation {
  const retentionMs = capabilities.retentionMs.value ?? Number.POSITIVE_INFINITY;
  const isForgotten =
    status.kind === 'no_answer' &&
    status.reason === 'not_found' &&
    (asked.sentMs ?? 0) >= retentionMs;
  return isForgotten ? { ...status, reason: 'retention_lapsed' } : status;
}

async function replay(
  { ledger, telemetry }: ActivityDependencies,
  provider: ProviderPort,
  asked: Asked,
): Promise<readonly Observation[]> {
  const { replayIsDeduplicated, dedupeWindowMs } = provider.capabilities;
  const { operationKey, attemptNo } = asked;
  // A repeat is a question only where its provider documents that it is not a second purchase.
  const isDocumented = [replayIsDeduplicated, dedupeWindowMs].every(
    ({ grade }) => grade === 'documented',
  );
  if (!replayIsDeduplicated.value || !isDocumented) return [];
  // Read before the ledger permits it: a process that was frozen in between lets nothing leave.
  const mayLeaveUntil = uptime() + QUESTION_LIMIT_MS / 1_000;
  const windowMs = dedupeWindowMs.value;
  const terms = await replayTerms(ledger, { operationKey, attemptNo, windowMs });
  if (terms.status !== 'permitted') return [];
  const { offer, requestText } = terms;
  const observation = await provider.replay(
    {
      idempotencyKey: terms.attemptKey,
      model: offer.model,
      requestText,
      bound: offer.bound,
      unit: terms.unit,
      maySend: () => uptime() < mayLeaveUntil,
    },
    questionSignal(),
  );
  const answer = answerOf(observation);
  telemetry.lookedUp({ provider: provider.name, kind: 'replay', answer });
  return [observation];
}

export function questionSignal(): AbortSignal {
  return AbortSignal.any([
    AbortSignal.timeout(QUESTION_LIMIT_MS),
    Context.current().cancellationSignal,
  ]);
}
