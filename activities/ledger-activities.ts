// Ledger activities
// -----------------
// The ledger's steps as activities. Before the fence an unreachable ledger is an answer and not a
// retried failure: this ask ends, and nothing of it is sent later. After the fence a step is
// repeated without limit.

import { HoldfastError } from '../domain/failure.js';
import type { Refusal } from '../domain/refusal.js';
import { isEnded } from '../domain/operation.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import { nextAttempt, placeHold } from '../ledger/admit.js';
import { endAsk, requestCancel, type StepAnswer, withdraw } from '../ledger/fence.js';
import { readOperation, readOperationByKey } from '../ledger/read.js';
import { markUnknown, recordObservation } from '../ledger/record.js';
import type { CancelWish, LedgerActivities, PlaceHoldInput, PlaceHoldResult } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { logState } from './log-state.js';
import { joining, prepare, scopesOf } from './prepare.js';
import { startAdmission } from './telemetry.js';
import { toApplicationFailure } from './to-application-failure.js';

export function createLedgerActivities(dependencies: ActivityDependencies): LedgerActivities {
  const { ledger } = dependencies;
  const step = async (run: Promise<StepAnswer>): Promise<OperationSnapshot> => {
    const answer = await translated(run);
    const snapshot = snapshotOf(answer);
    logState(dependencies, snapshot);
    return snapshot;
  };
  return {
    placeHold: (request) => place(dependencies, request),
    async readOperation(operation) {
      const snapshot = await translated(readOperation(ledger, operation));
      if (snapshot === undefined) throw lost(operation.operationId);
      return snapshot;
    },
    async findOperation(operation) {
      return (await translated(readOperation(ledger, operation))) ?? null;
    },
    markUnknown: ({ operationKey, detail }) =>
      step(markUnknown(ledger, { operationKey, reason: 'local_end', detail })),
    recordHandedOver: ({ askId, ...record }) =>
      step(recordObservation(ledger, { ...record, ask: askId, via: 'dispatch' })),
    nextAttempt: ({ askId, ...request }) => step(nextAttempt(ledger, { ...request, ask: askId })),
    withdraw: (request) => step(withdraw(ledger, request)),
    requestCancel: (request) => storeCancel(dependencies, request, step),
    async endAsk({ accountId, operationId, askId, reason, claim }) {
      const answer = await translated(
        endAsk(ledger, {
          account: accountId,
          operation: operationId,
          ask: askId,
          reason,
          ...(claim !== undefined && { claim }),
        }),
      );
      return answer.status === 'ledger_untrusted' ? snapshotOf(answer) : (answer.snapshot ?? null);
    },
  };
}

/** That nobody can be asked to stop it is said at once, and only where no open attempt can be. */
async function storeCancel(
  { ledger, providers }: ActivityDependencies,
  wish: CancelWish & { readonly operationKey: string },
  step: (run: Promise<StepAnswer>) => Promise<OperationSnapshot>,
): Promise<OperationSnapshot> {
  const stored = await translated(readOperationByKey(ledger, wish.operationKey));
  const isSupported = (stored?.attempts ?? []).some(
    ({ phase, provider }) =>
      !isEnded(phase) && providers.get(provider)?.capabilities.cancel.value === 'best_effort',
  );
  return step(requestCancel(ledger, { ...wish, isSupported }));
}

async function translated<T>(run: Promise<T>): Promise<T> {
  try {
    return await run;
  } catch (error) {
    throw toApplicationFailure(error);
  }
}

function snapshotOf(answer: StepAnswer): OperationSnapshot {
  if (answer.status === 'ledger_untrusted') {
    throw toApplicationFailure(
      new HoldfastError(
        'LEDGER_UNTRUSTED',
        'nothing is placed or returned until an operator opens it again',
      ),
    );
  }
  if (answer.snapshot === undefined || answer.snapshot === null) throw lost('');
  return answer.snapshot;
}

function lost(operationId: string): unknown {
  return toApplicationFailure(
    new HoldfastError('LEDGER_UNTRUSTED', `operation "${operationId}" is missing from the ledger`),
  );
}

async function place(
  dependencies: ActivityDependencies,
  request: PlaceHoldInput,
): Promise<PlaceHoldResult> {
  const { ledger } = dependencies;
  const { input, operationId } = request;
  const admission = startAdmission(dependencies.telemetry);
  try {
    const offered = await prepare(dependencies, request);
    // An id that exists is answered before anything of today is read, the configuration included.
    const prepared = offered.kind === 'invalid' ? await joining(dependencies, request) : offered;
    if (prepared === undefined) {
      admission.ended('invalid', '');
      return offered as Extract<PlaceHoldResult, { kind: 'invalid' }>;
    }
    const answer = await placeHold(ledger, {
      account: input.accountId,
      operation: operationId,
      kind: request.kind,
      workflow: request.workflowId,
      ask: request.askId,
      terms: prepared.terms,
      scopes: scopesOf(input),
      chain: prepared.chain,
      requestDigest: prepared.requestDigest,
      ...(prepared.requestText !== undefined && { requestText: prepared.requestText }),
    });
    admission.answered(answer);
    switch (answer.status) {
      case 'placed':
      case 'exists':
        logState(dependencies, answer.snapshot);
        return { kind: 'admitted', snapshot: answer.snapshot };
      case 'closed':
        return { kind: 'closed', snapshot: answer.snapshot };
      case 'refused':
        logRefusal(dependencies, request, answer.refusal);
        return { kind: 'refused', refusal: answer.refusal };
      case 'ask_ended':
        return { kind: 'unavailable', reason: 'ask_ended' };
      case 'ledger_untrusted':
        return { kind: 'unavailable', reason: 'ledger_untrusted' };
    }
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'LEDGER_UNAVAILABLE') {
      admission.ended('unavailable', 'ledger_unavailable');
      return { kind: 'unavailable', reason: 'ledger_unavailable' };
    }
    throw toApplicationFailure(error);
  }
}

function logRefusal(
  { logger }: ActivityDependencies,
  { input, operationId }: PlaceHoldInput,
  refusal: Refusal,
): void {
  logger.info({ accountId: input.accountId, operationId, refusal }, 'admission refused');
}
