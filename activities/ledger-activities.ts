// Ledger activities
// -----------------
// The ledger's steps as activities. Before the fence an unreachable ledger is an answer and not a
// retried failure: this ask ends, and nothing of it is sent later. After the fence a step is
// repeated without limit.

import { HoldfastError } from '../domain/failure.js';
import {
  bodyProblems,
  type LlmCallInput,
  inputTokensAtMost,
  maxTokensProblems,
  type Problem,
} from '../domain/call-input.js';
import type { Refusal } from '../domain/refusal.js';
import type { Chain, RouteOffer, RouteSettings } from '../domain/route.js';
import type { OperationSnapshot } from '../domain/snapshot.js';
import { nextAttempt, placeHold } from '../ledger/admit.js';
import { createBodyStore, digestOf } from '../ledger/bodies.js';
import { endAsk, requestCancel, type StepAnswer, withdraw } from '../ledger/fence.js';
import { readOperation } from '../ledger/read.js';
import { markUnknown, recordObservation } from '../ledger/record.js';
import type { LedgerActivities, PlaceHoldInput, PlaceHoldResult } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { logState } from './log-state.js';
import { toApplicationFailure } from './to-application-failure.js';

export function createLedgerActivities(dependencies: ActivityDependencies): LedgerActivities {
  const { ledger } = dependencies;
  const step = async (run: Promise<StepAnswer>): Promise<OperationSnapshot> => {
    const answer = await translated(run);
    const snapshot = snapshotOf(answer);
    logState(dependencies.logger, snapshot);
    return snapshot;
  };
  return {
    placeHold: (request) => place(dependencies, request),
    async readOperation(operation) {
      const snapshot = await translated(readOperation(ledger, operation));
      if (snapshot === undefined) throw lost(operation.operationId);
      return snapshot;
    },
    markUnknown: ({ operationKey, detail }) =>
      step(markUnknown(ledger, { operationKey, reason: 'local_end', detail })),
    recordHandedOver: ({ askId, ...record }) =>
      step(recordObservation(ledger, { ...record, ask: askId, via: 'dispatch' })),
    nextAttempt: ({ askId, ...request }) => step(nextAttempt(ledger, { ...request, ask: askId })),
    withdraw: (request) => step(withdraw(ledger, request)),
    requestCancel: (request) => step(requestCancel(ledger, { ...request, isSupported: false })),
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
  const { ledger, logger } = dependencies;
  const { input, operationId } = request;
  try {
    const offered = await prepare(dependencies, request);
    // An id that exists is answered before anything of today is read, the configuration included.
    const prepared = offered.kind === 'invalid' ? await joining(dependencies, request) : offered;
    if (prepared === undefined) return offered as Extract<PlaceHoldResult, { kind: 'invalid' }>;
    const answer = await placeHold(ledger, {
      account: input.accountId,
      operation: operationId,
      kind: 'call',
      workflow: request.workflowId,
      ask: request.askId,
      terms: prepared.terms,
      scopes: scopesOf(input),
      chain: prepared.chain,
      requestDigest: prepared.requestDigest,
      ...(prepared.requestText !== undefined && { requestText: prepared.requestText }),
    });
    switch (answer.status) {
      case 'placed':
      case 'exists':
        logState(logger, answer.snapshot);
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

interface Prepared {
  readonly kind: 'prepared';
  readonly terms: Readonly<Record<string, unknown>>;
  readonly chain: Chain;
  readonly requestDigest: string;
  readonly requestText?: string;
}

/** Checks what only a worker knows: the route, its limit, and the text behind a reference. */
async function prepare(
  dependencies: ActivityDependencies,
  { input }: PlaceHoldInput,
): Promise<Prepared | { readonly kind: 'invalid'; readonly problems: readonly Problem[] }> {
  const route = dependencies.routes.get(input.route);
  if (route === undefined) {
    const known = [...dependencies.routes.keys()].join(', ');
    return invalid(
      'route',
      `is "${input.route}", which is not configured; configured are ${known}`,
    );
  }
  const tooMany = maxTokensProblems(input.maxTokens, route.maxTokensMax);
  if (tooMany.length > 0) return { kind: 'invalid', problems: tooMany };

  const requestText =
    input.requestRef === undefined
      ? JSON.stringify(input.request)
      : await createBodyStore(dependencies.ledger).get(input.requestRef);
  if (requestText === undefined) {
    return invalid(
      'requestRef',
      `is "${input.requestRef ?? ''}", which the body store does not have; put it there first`,
    );
  }
  const request = parseJson(requestText);
  const problems = bodyProblems(request);
  if (problems.length > 0) return { kind: 'invalid', problems };

  const messageCount = (request as { messages: unknown[] }).messages.length;
  const bound = {
    request: 1,
    input_tokens: inputTokensAtMost(requestText, messageCount),
    output_tokens: input.maxTokens,
  };
  const requestDigest = digestOf(requestText);
  return {
    kind: 'prepared',
    chain: chainOf(dependencies, route, bound),
    requestDigest,
    requestText,
    terms: termsOf(input, requestDigest),
  };
}

/** The caller's terms: what makes two askings the same. */
function termsOf(input: LlmCallInput, requestDigest: string): Prepared['terms'] {
  return {
    kind: 'call',
    account: input.accountId,
    route: input.route,
    request: requestDigest,
    maxTokens: input.maxTokens,
    tags: [...(input.tags ?? [])].sort(),
    endUser: input.endUser ?? null,
    taskId: input.taskId ?? null,
  };
}

/** To join what is stored: the caller's terms alone. Undefined where it would be admitted anew. */
async function joining(
  { ledger }: ActivityDependencies,
  { input, operationId }: PlaceHoldInput,
): Promise<Prepared | undefined> {
  const stored = await readOperation(ledger, { accountId: input.accountId, operationId });
  const isAdmittedAnew =
    stored === undefined ||
    (stored.outcome === 'released' &&
      stored.attempts.every((attempt) => attempt.phase === 'withdrawn'));
  if (isAdmittedAnew) return undefined;
  const requestDigest = input.requestRef ?? digestOf(JSON.stringify(input.request));
  return {
    kind: 'prepared',
    terms: termsOf(input, requestDigest),
    chain: {
      routes: [],
      fallbackWhileUnknown: 'wait',
      fallbackHold: 'each',
      sameRouteAttempts: 0,
    },
    requestDigest,
  };
}

function invalid(field: string, message: string): { kind: 'invalid'; problems: Problem[] } {
  return { kind: 'invalid', problems: [{ field, message }] };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: `bodyProblems` says so, with the field.
    return text;
  }
}

function chainOf(
  { routes }: ActivityDependencies,
  first: RouteSettings,
  bound: RouteOffer['bound'],
): Chain {
  const names = [first.route, ...first.fallbacks];
  return {
    routes: names.flatMap((name) => {
      const settings = routes.get(name);
      return settings === undefined ? [] : [offerOf(settings, bound)];
    }),
    fallbackWhileUnknown: first.fallbackWhileUnknown,
    fallbackHold: first.fallbackHold,
    sameRouteAttempts: first.sameRouteAttempts,
  };
}

function offerOf(settings: RouteSettings, bound: RouteOffer['bound']): RouteOffer {
  const { route, provider, model, paidAttemptsPerSend, timings } = settings;
  return { route, provider, model, bound, paidAttemptsPerSend, timings };
}

function scopesOf(input: PlaceHoldInput['input']): {
  tags?: readonly string[];
  endUser?: string;
  taskId?: string;
} {
  return {
    ...(input.tags !== undefined && { tags: input.tags }),
    ...(input.endUser !== undefined && { endUser: input.endUser }),
    ...(input.taskId !== undefined && { taskId: input.taskId }),
  };
}
