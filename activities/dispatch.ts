// Dispatch
// --------
// One send of one attempt: the fence, the request, the record. The fence decides who may send, not
// a retry setting: a reset, a pause, a second supervisor run this beside the first.
//
// Invariants:
//   A1. No byte leaves without the fence, nor after its time, which is counted from before the
//       fence statement left on a clock that runs through suspension.
//   A2. Once bytes may have left, the record is repeated without limit; nothing is sent again.
//   A3. A Temporal cancel, a lost heartbeat or a terminated workflow does not end the waiting.

import { randomUUID } from 'node:crypto';
import { uptime } from 'node:os';
import { Context } from '@temporalio/activity';
import { HoldfastError } from '../domain/failure.js';
import { encodeObservation, type ObservationJson } from '../domain/observation.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import { digestOf } from '../ledger/bodies.js';
import { type FenceAnswer, giveUp, type StepAnswer, takeFence } from '../ledger/fence.js';
import { recordObservation, type ObservationRecord } from '../ledger/record.js';
import type { Dispatched, ProviderPort } from '../providers/port.js';
import type { DispatchActivities, DispatchInput, DispatchResult } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { logState } from './log-state.js';
import { toApplicationFailure } from './to-application-failure.js';

const SEND_WINDOW_S = 5;
const RECORD_PAUSE_MS = 250;
/** How long an adapter may take to return once its waiting was ended. */
const ADAPTER_LIMIT_MS = 5_000;
const ABANDON_PAUSE_MS = 1_000;
const ABANDON_TRIES = 30;

export function createDispatchActivities(dependencies: ActivityDependencies): DispatchActivities {
  return {
    async dispatch(input) {
      const stopHeartbeat = startHeartbeat(input.heartbeatMs);
      try {
        return await dispatch(dependencies, input);
      } catch (error) {
        throw toApplicationFailure(error);
      } finally {
        stopHeartbeat();
      }
    },
  };
}

async function dispatch(
  dependencies: ActivityDependencies,
  input: DispatchInput,
): Promise<DispatchResult> {
  const claim = randomUUID();
  // Read before the statement leaves, so that it can only be too early, never too late.
  const sendUntil = uptime() + SEND_WINDOW_S;
  let fence: FenceAnswer;
  try {
    fence = await takeFence(dependencies.ledger, { ...input, claim, ask: input.askId });
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'LEDGER_UNAVAILABLE') {
      // The workflow ends the ask under this claim. It may not hear of the claim, when Temporal gave
      // this sender up meanwhile: so the claim is also given up from here. It was never sent under.
      void abandonClaim(dependencies, { ...input, claim });
      return { kind: 'unavailable', claim };
    }
    throw error;
  }
  switch (fence.status) {
    case 'ledger_untrusted':
      return { kind: 'untrusted' };
    case 'taken_by_other':
    case 'refused': {
      if (fence.snapshot === undefined) {
        throw new HoldfastError(
          'LEDGER_UNTRUSTED',
          `attempt ${input.attemptNo} of ${input.operationKey} is missing`,
        );
      }
      return { kind: 'recorded', snapshot: fence.snapshot };
    }
    case 'taken':
    case 'own':
      return send(dependencies, { input, claim, fence, maySend: () => uptime() < sendUntil });
  }
}

interface Send {
  readonly input: DispatchInput;
  readonly claim: string;
  readonly fence: Extract<FenceAnswer, { status: 'taken' | 'own' }>;
  readonly maySend: () => boolean;
}

async function send(dependencies: ActivityDependencies, sending: Send): Promise<DispatchResult> {
  const { input, claim, fence } = sending;
  const provider = dependencies.providers.get(fence.offer.provider);
  const attempt = { operationKey: input.operationKey, attemptNo: input.attemptNo, claim };
  if (provider === undefined || fence.requestText === null || !sending.maySend()) {
    return giveBack(dependencies, attempt);
  }
  const dispatched = await askProvider(provider, { ...sending, requestText: fence.requestText });
  if (dispatched.kind === 'late') return giveBack(dependencies, attempt);

  const observation = encodeObservation(dispatched.observation);
  const next = nextOffer(input, observation);
  const record: ObservationRecord = {
    ...attempt,
    via: 'dispatch',
    observation,
    ask: input.askId,
    ...(next !== undefined && { next }),
    ...(dispatched.answer !== undefined && {
      answer: { digest: digestOf(dispatched.answer.text), text: dispatched.answer.text },
    }),
  };
  const snapshot = await untilRecorded(() => recordWithAnswer(dependencies, record));
  if (snapshot === undefined) {
    return { kind: 'handed_over', record: { ...attempt, askId: input.askId, observation } };
  }
  logState(dependencies, snapshot);
  return { kind: 'recorded', snapshot };
}

async function askProvider(
  provider: ProviderPort,
  sending: Send & { readonly requestText: string },
): Promise<Dispatched> {
  const { fence } = sending;
  const ending = new AbortController();
  const limit = setTimeout(() => {
    ending.abort();
  }, fence.offer.timings.dispatchLimitMs);
  const shutdown = onWorkerShutdown(() => {
    ending.abort();
  });
  const overdue = afterTheEnd(ending.signal);
  try {
    const dispatched = provider.dispatch(
      {
        idempotencyKey: fence.attemptKey,
        model: fence.offer.model,
        requestText: sending.requestText,
        bound: fence.offer.bound,
        unit: fence.unit,
        maySend: sending.maySend,
      },
      ending.signal,
    );
    return await Promise.race([dispatched, overdue.ended]);
  } finally {
    clearTimeout(limit);
    overdue.forget();
    shutdown();
  }
}

/** An adapter that does not return although its waiting was ended has not answered either. */
function afterTheEnd(signal: AbortSignal): {
  readonly ended: Promise<Dispatched>;
  readonly forget: () => void;
} {
  let timer: NodeJS.Timeout | undefined;
  const ended = new Promise<Dispatched>((resolve) => {
    signal.addEventListener('abort', () => {
      timer = setTimeout(() => {
        resolve({
          kind: 'observed',
          observation: {
            kind: 'no_answer',
            reason: 'local_end',
            detail: 'the adapter did not return when its waiting was ended',
            evidence: { source: 'transport', reference: 'no return' },
          },
        });
      }, ADAPTER_LIMIT_MS);
    });
  });
  return {
    ended,
    forget: () => {
      clearTimeout(timer);
    },
  };
}

/** A text that the database cannot store is left out: the charge is booked without it. */
async function recordWithAnswer(
  { ledger, logger }: ActivityDependencies,
  record: ObservationRecord,
): Promise<StepAnswer> {
  try {
    return await recordObservation(ledger, record);
  } catch (error) {
    const isRefusedText =
      error instanceof HoldfastError &&
      error.code === 'LEDGER_CONTRACT_BROKEN' &&
      record.answer !== undefined;
    if (!isRefusedText) throw error;
    logger.warn(
      { operationKey: record.operationKey },
      'answer could not be stored, recording without it',
    );
    const withoutAnswer = Object.fromEntries(
      Object.entries(record).filter(([field]) => field !== 'answer'),
    ) as unknown as ObservationRecord;
    return recordObservation(ledger, withoutAnswer);
  }
}

/** Where to go on to: after a proof that nothing was sent the same route, else the next one. */
function nextOffer(input: DispatchInput, observation: ObservationJson): DispatchInput['nextRoute'] {
  if (observation.kind !== 'not_accepted') return undefined;
  return observation.proof === 'no_connection'
    ? (input.sameRoute ?? input.nextRoute)
    : input.nextRoute;
}

/** In the background, for as long as a fence statement in doubt could still be carried out. */
async function abandonClaim(
  { ledger, logger }: ActivityDependencies,
  attempt: { readonly operationKey: string; readonly attemptNo: number; readonly claim: string },
): Promise<void> {
  for (let tryNo = 1; tryNo <= ABANDON_TRIES; tryNo += 1) {
    try {
      const answer = await giveUp(ledger, attempt);
      if (answer.status === 'given_up') return;
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      logger.debug({ ...attempt, tryNo, code: error.code }, 'claim not given up yet');
    }
    await new Promise((resolve) => setTimeout(resolve, ABANDON_PAUSE_MS).unref());
  }
}

/** A sender that sent no byte gives the attempt up, under its claim. */
async function giveBack(
  dependencies: ActivityDependencies,
  attempt: { readonly operationKey: string; readonly attemptNo: number; readonly claim: string },
): Promise<DispatchResult> {
  const snapshot = await untilRecorded(() => giveUp(dependencies.ledger, attempt));
  if (snapshot === undefined) return { kind: 'unavailable', claim: attempt.claim };
  logState(dependencies, snapshot);
  return { kind: 'recorded', snapshot };
}

/** Repeats a ledger step until it is answered; undefined when the worker must stop first. */
async function untilRecorded(
  step: () => Promise<{ status: string; snapshot?: OperationSnapshot | null | undefined }>,
): Promise<OperationSnapshot | undefined> {
  const stop = { isWanted: false };
  const off = onWorkerShutdown(() => {
    stop.isWanted = true;
  });
  try {
    for (;;) {
      try {
        const answer = await step();
        if (answer.snapshot !== undefined && answer.snapshot !== null) return answer.snapshot;
      } catch (error) {
        if (!(error instanceof HoldfastError && error.retryable)) throw error;
      }
      if (stop.isWanted) return undefined;
      await new Promise((resolve) => setTimeout(resolve, RECORD_PAUSE_MS));
    }
  } finally {
    off();
  }
}

/** Calls back when this worker must stop; a Temporal cancel of any other kind is not heard. */
function onWorkerShutdown(callback: () => void): () => void {
  const context = Context.current();
  const { cancellationSignal } = context;
  const listener = (): void => {
    if (context.cancellationDetails?.workerShutdown === true) callback();
  };
  if (cancellationSignal.aborted) listener();
  cancellationSignal.addEventListener('abort', listener);
  return () => {
    cancellationSignal.removeEventListener('abort', listener);
  };
}

function startHeartbeat(heartbeatMs: number): () => void {
  const context = Context.current();
  // The server counts from the start of the activity; a beat at once would cost it a transition.
  const timer = setInterval(
    () => {
      context.heartbeat();
    },
    Math.max(50, Math.floor(heartbeatMs / 3)),
  );
  return () => {
    clearInterval(timer);
  };
}
