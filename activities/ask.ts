// Ask
// ---
// One round of questions about an operation: each open attempt is asked about once, and each answer
// is recorded. Where nothing can be looked up but keys are documented to be told apart, the question
// is the same request once more, under its key. It returns when there is something new for the
// supervisor; until then it throws CHARGE_NOT_KNOWN_YET with the delay, and its retry policy is the
// waiting.

import { uptime } from 'node:os';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { HoldfastError } from '../domain/failure.js';
import { nextQuestionDelayMs } from '../domain/lookup-schedule.js';
import { newestAttempt, nextStep } from '../domain/next-step.js';
import { encodeObservation, type Observation } from '../domain/observation.js';
import { isEnded } from '../domain/operation.js';
import type { AttemptSnapshot, OperationSnapshot } from '../domain/snapshot.js';
import { readOperation } from '../ledger/read.js';
import { recordObservation } from '../ledger/record.js';
import { replayTerms } from '../ledger/replay.js';
import type { ProviderPort } from '../providers/port.js';
import type { AskInput, NotKnownYet, ReconcileActivities } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { logState } from './log-state.js';
import { toApplicationFailure } from './to-application-failure.js';

/** Longer than any sane answer to a question, in milliseconds. */
const QUESTION_LIMIT_MS = 10_000;
/** The server closes an activity whose retry delay is 0. */
const DELAY_MS_MIN = 100;

export function createReconcileActivities(dependencies: ActivityDependencies): ReconcileActivities {
  return {
    async ask(input) {
      try {
        return await ask(dependencies, input);
      } catch (error) {
        throw toApplicationFailure(error);
      }
    },
  };
}

async function ask(
  dependencies: ActivityDependencies,
  input: AskInput,
): Promise<OperationSnapshot> {
  const stored = await readOperation(dependencies.ledger, input);
  if (stored === undefined) {
    throw new HoldfastError(
      'LEDGER_UNTRUSTED',
      `operation "${input.operationId}" is missing from the ledger`,
    );
  }
  if (isNews(stored, input)) return stored;

  let snapshot = stored;
  let delayMs = Number.POSITIVE_INFINITY;
  for (const attempt of stored.attempts) {
    if (isEnded(attempt.phase) || attempt.phase === 'not_sent') continue;
    const round = await askAbout(dependencies, stored, attempt);
    snapshot = round.snapshot;
    delayMs = Math.min(delayMs, round.delayMs);
  }
  if (snapshot.state !== stored.state) logState(dependencies.logger, snapshot);
  if (isNews(snapshot, input)) return snapshot;
  throw notKnownYet(snapshot, Math.max(DELAY_MS_MIN, delayMs));
}

function isNews(snapshot: OperationSnapshot, input: AskInput): boolean {
  return snapshot.state !== input.knownState || nextStep(snapshot).kind !== 'ask';
}

async function askAbout(
  dependencies: ActivityDependencies,
  operation: OperationSnapshot,
  attempt: AttemptSnapshot,
): Promise<{ readonly snapshot: OperationSnapshot; readonly delayMs: number }> {
  const { ledger, providers } = dependencies;
  const provider = providers.get(attempt.provider);
  const delay = (retryAfterMs?: number): number =>
    nextQuestionDelayMs(
      { firstMs: attempt.timings.questionFirstMs, maxMs: attempt.timings.questionMaxMs },
      attempt.unknownMs ?? 0,
      { randomShare: Math.random(), ...(retryAfterMs !== undefined && { retryAfterMs }) },
    );
  const { operationKey } = operation;
  const observation =
    provider && (await question(dependencies, provider, { ...attempt, operationKey }));
  // Nothing can be asked: it stays as it is until somebody brings evidence.
  if (observation === undefined) return { snapshot: operation, delayMs: delay() };
  const delayMs = delay(observation.kind === 'no_answer' ? observation.retryAfterMs : undefined);
  const answer = await recordObservation(ledger, {
    operationKey,
    attemptNo: attempt.attemptNo,
    via: 'lookup',
    observation: encodeObservation(observation),
    questionDelayMs: delayMs,
  });
  return { snapshot: answer.snapshot ?? operation, delayMs };
}

type Asked = Pick<AttemptSnapshot, 'attemptNo' | 'attemptKey' | 'unit' | 'remoteId'> &
  Pick<OperationSnapshot, 'operationKey'>;

/** Undefined where nothing can be asked, or not now. */
async function question(
  { ledger }: ActivityDependencies,
  provider: ProviderPort,
  asked: Asked,
): Promise<Observation | undefined> {
  const { lookUpByKey, replayIsDeduplicated, dedupeWindowMs } = provider.capabilities;
  const { operationKey, attemptNo, attemptKey: idempotencyKey, unit, remoteId } = asked;
  if (lookUpByKey.value !== 'none') {
    const request = { idempotencyKey, unit, ...(remoteId !== null && { remoteId }) };
    return provider.lookUp(request, questionSignal());
  }
  // A repeat is a question only where its provider documents that it is not a second purchase.
  const isDocumented = [replayIsDeduplicated, dedupeWindowMs].every(
    ({ grade }) => grade === 'documented',
  );
  if (!replayIsDeduplicated.value || !isDocumented) return undefined;
  // Read before the ledger permits it: a process that was frozen in between lets nothing leave.
  const mayLeaveUntil = uptime() + QUESTION_LIMIT_MS / 1_000;
  const windowMs = dedupeWindowMs.value;
  const terms = await replayTerms(ledger, { operationKey, attemptNo, windowMs });
  if (terms.status !== 'permitted') return undefined;
  const { offer, requestText } = terms;
  return provider.replay(
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
}

function questionSignal(): AbortSignal {
  return AbortSignal.any([
    AbortSignal.timeout(QUESTION_LIMIT_MS),
    Context.current().cancellationSignal,
  ]);
}

function notKnownYet(snapshot: OperationSnapshot, nextDelayMs: number): ApplicationFailure {
  const attempt = newestAttempt(snapshot);
  const details: NotKnownYet = { nextDelayMs };
  return ApplicationFailure.create({
    type: 'CHARGE_NOT_KNOWN_YET',
    message:
      `${attempt.route} was asked ${attempt.questionCount} times; last answer: ` +
      `${attempt.lastAnswer ?? 'nothing can be asked there'}; the hold of ${attempt.heldAmount} stays`,
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: nextDelayMs,
    details: [details],
  });
}
