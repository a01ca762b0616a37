// Ask
// ---
// One round of questions about an operation: each open attempt is asked about once, and each answer
// is recorded. It returns when there is something new for the supervisor; until then it throws
// CHARGE_NOT_KNOWN_YET with the delay, and its retry policy is the waiting.

import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { HoldfastError } from '../domain/failure.js';
import { nextQuestionDelayMs } from '../domain/lookup-schedule.js';
import { newestAttempt, nextStep } from '../domain/next-step.js';
import { encodeObservation } from '../domain/observation.js';
import { isEnded } from '../domain/operation.js';
import { shownOf } from '../domain/shown.js';
import type { AttemptSnapshot, OperationSnapshot } from '../domain/snapshot.js';
import { readOperation } from '../ledger/read.js';
import { recordObservation } from '../ledger/record.js';
import type { ProviderPort } from '../providers/port.js';
import type { AskInput, NotKnownYet, ReconcileActivities } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { logState, tellAlerts } from './log-state.js';
import { passOnCancel } from './pass-on-cancel.js';
import { question } from './question.js';
import { toApplicationFailure } from './to-application-failure.js';

/** Work that is seen running is looked at this often at least: it ends, and then its hold goes back. */
const FOLLOW_MAX_MS = 60_000;
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
  if (!input.isWoken && isNews(stored, input)) return stored;

  let snapshot = stored;
  let delayMs = Number.POSITIVE_INFINITY;
  for (const attempt of stored.attempts) {
    if (isEnded(attempt.phase) || attempt.phase === 'not_sent') continue;
    // Somebody asked not long ago: it is waited for, and not asked twice.
    if (!input.isWoken && (attempt.dueInMs ?? 0) > 0) {
      delayMs = Math.min(delayMs, attempt.dueInMs ?? 0);
      continue;
    }
    const round = await askAbout(dependencies, stored, attempt);
    snapshot = round.snapshot;
    delayMs = Math.min(delayMs, round.delayMs);
  }
  if (snapshot.state !== stored.state) logState(dependencies, snapshot);
  if (input.isWoken || isNews(snapshot, input)) return snapshot;
  throw notKnownYet(snapshot, Math.max(DELAY_MS_MIN, delayMs));
}

function isNews(snapshot: OperationSnapshot, input: AskInput): boolean {
  return shownOf(snapshot) !== input.shown || nextStep(snapshot, input.rights).kind !== 'ask';
}

interface Round {
  readonly snapshot: OperationSnapshot;
  readonly delayMs: number;
}

/** One round about one attempt: a wish to stop first, then what became of it and what it cost. */
async function askAbout(
  dependencies: ActivityDependencies,
  operation: OperationSnapshot,
  attempt: AttemptSnapshot,
): Promise<Round> {
  const { ledger, providers } = dependencies;
  const provider = providers.get(attempt.provider);
  const delay = (retryAfterMs?: number): number => delayOf(attempt, provider, retryAfterMs);
  // Nothing can be asked: it stays as it is until somebody brings evidence.
  if (provider === undefined) return { snapshot: operation, delayMs: delay() };
  const { operationKey } = operation;
  let snapshot = (await passOnCancel(dependencies, provider, { operation, attempt })) ?? operation;
  const observations = await question(dependencies, provider, { ...attempt, operationKey });
  let delayMs = delay();
  for (const observation of observations) {
    delayMs = delay(observation.kind === 'no_answer' ? observation.retryAfterMs : undefined);
    const answer = await recordObservation(ledger, {
      operationKey,
      attemptNo: attempt.attemptNo,
      via: 'lookup',
      observation: encodeObservation(observation),
      questionDelayMs: delayMs,
    });
    snapshot = answer.snapshot ?? snapshot;
    tellAlerts(dependencies, snapshot);
  }
  return { snapshot, delayMs };
}

/** A question comes well before what it asks about is forgotten there. */
function delayOf(
  attempt: AttemptSnapshot,
  provider: ProviderPort | undefined,
  retryAfterMs: number | undefined,
): number {
  const { questionFirstMs, questionMaxMs } = attempt.timings;
  const isFollowed = attempt.phase === 'in_flight';
  const retentionMs = provider?.capabilities.retentionMs.value ?? Number.POSITIVE_INFINITY;
  const maxMs = Math.min(
    questionMaxMs,
    isFollowed ? FOLLOW_MAX_MS : Number.POSITIVE_INFINITY,
    Math.floor(retentionMs / 3),
  );
  const ageMs = attempt.unknownMs ?? attempt.sentMs ?? 0;
  return nextQuestionDelayMs({ firstMs: questionFirstMs, maxMs }, Math.max(0, ageMs), {
    randomShare: Math.random(),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
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
