// Prepare
// -------
// Turns an asking into what the ledger admits: the caller's terms, the chain with its priced bounds,
// and the request's text. It checks what only a worker knows: the route, its limits, and the text
// behind a reference.

import { bodyProblems, inputTokensAtMost, maxTokensProblems } from '../domain/call-input.js';
import type { Problem } from '../domain/input-fields.js';
import { boundProblemsOnRoute, jobRequestProblems } from '../domain/job-input.js';
import type { Usage } from '../domain/observation.js';
import type { Chain, RouteOffer, RouteSettings } from '../domain/route.js';
import { createBodyStore, digestOf } from '../ledger/bodies.js';
import { readOperation } from '../ledger/read.js';
import type { Asked, PlaceHoldInput } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';

export interface Prepared {
  readonly kind: 'prepared';
  readonly terms: Readonly<Record<string, unknown>>;
  readonly chain: Chain;
  readonly requestDigest: string;
  readonly requestText?: string;
}

type Invalid = { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

const WORDS = {
  call: { other: 'jobs', start: 'remoteJob' },
  job: { other: 'calls', start: 'llmCall' },
} as const;

export async function prepare(
  dependencies: ActivityDependencies,
  asked: PlaceHoldInput,
): Promise<Prepared | Invalid> {
  const { kind, input } = asked;
  const route = dependencies.routes.get(input.route);
  if (route === undefined) {
    const known = [...dependencies.routes.keys()].join(', ');
    return invalid(
      'route',
      `is "${input.route}", which is not configured; configured are ${known}`,
    );
  }
  if (route.kind !== kind) {
    const { other, start } = WORDS[kind];
    return invalid('route', `is "${input.route}", which is for ${other}; start it with ${start}`);
  }
  const beyond = beyondRoute(asked, route);
  if (beyond.length > 0) return { kind: 'invalid', problems: beyond };

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
  const problems = kind === 'call' ? bodyProblems(request) : jobRequestProblems(request);
  if (problems.length > 0) return { kind: 'invalid', problems };

  const requestDigest = digestOf(requestText);
  return {
    kind: 'prepared',
    chain: chainOf(dependencies, route, boundOf(asked, requestText)),
    requestDigest,
    requestText,
    terms: termsOf(asked, requestDigest),
  };
}

/** What the route does not allow. */
function beyondRoute(asked: Asked, route: RouteSettings): readonly Problem[] {
  if (asked.kind === 'job') {
    return boundProblemsOnRoute(asked.input.bound, route.kind === 'job' ? route.boundMax : {});
  }
  return maxTokensProblems(
    asked.input.maxTokens,
    route.kind === 'call' ? route.maxTokensMax : undefined,
  );
}

/** The bound that is priced here is the one that is sent. */
function boundOf(asked: Asked, requestText: string): Usage {
  if (asked.kind === 'job') return { request: 1, ...asked.input.bound };
  const messageCount = (JSON.parse(requestText) as { messages: unknown[] }).messages.length;
  return {
    request: 1,
    input_tokens: inputTokensAtMost(requestText, messageCount),
    output_tokens: asked.input.maxTokens,
  };
}

/** The caller's terms: what makes two askings the same. */
export function termsOf(
  { kind, input }: Asked,
  requestDigest = input.requestRef ?? digestOf(JSON.stringify(input.request)),
): Prepared['terms'] {
  const { accountId: account, route, tags, endUser, taskId } = input;
  return {
    ...{ kind, account, route, request: requestDigest },
    ...('bound' in input ? { bound: input.bound } : { maxTokens: input.maxTokens }),
    tags: [...(tags ?? [])].sort(),
    endUser: endUser ?? null,
    taskId: taskId ?? null,
  };
}

/** To join what is stored: the caller's terms alone. Undefined where it would be admitted anew. */
export async function joining(
  { ledger }: ActivityDependencies,
  asked: PlaceHoldInput,
): Promise<Prepared | undefined> {
  const { input, operationId } = asked;
  const stored = await readOperation(ledger, { accountId: input.accountId, operationId });
  const isAdmittedAnew =
    stored === undefined ||
    (stored.outcome === 'released' &&
      stored.attempts.every((attempt) => attempt.phase === 'withdrawn'));
  if (isAdmittedAnew) return undefined;
  const requestDigest = input.requestRef ?? digestOf(JSON.stringify(input.request));
  return {
    kind: 'prepared',
    terms: termsOf(asked, requestDigest),
    chain: {
      routes: [],
      fallbackWhileUnknown: 'wait',
      fallbackHold: 'each',
      sameRouteAttempts: 0,
    },
    requestDigest,
  };
}

function invalid(field: string, message: string): Invalid {
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

export function scopesOf(input: PlaceHoldInput['input']): {
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
