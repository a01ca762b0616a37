// Job input
// ---------
// What a caller asks for when the work goes on at the provider after it was accepted. The bound is
// what is priced, held, and sent as the provider's own limit: one value.

import {
  idProblems,
  isRecord,
  type Problem,
  requestChoiceProblems,
  say,
  tagProblems,
  unknownFieldProblems,
  utf8ByteCount,
} from './input-fields.js';
import type { Usage } from './observation.js';

export interface RemoteJobInput {
  readonly accountId: string;
  /** Default: what the workflow id says. */
  readonly operationId?: string;
  readonly route: string;
  /** The most that may be bought, by billable dimension, such as `{"ticks": 20}`. */
  readonly bound: Usage;
  /** The job's own input, an object: it then stands in the workflow history. */
  readonly request?: Readonly<Record<string, unknown>>;
  /** Or a reference to its text in the body store, which keeps it out of the history. */
  readonly requestRef?: string;
  readonly tags?: readonly string[];
  readonly endUser?: string;
  readonly taskId?: string;
  /** Names this asking; a client that repeats itself keeps it. */
  readonly askId?: string;
}

export type ReadJobInput =
  | { readonly kind: 'input'; readonly input: RemoteJobInput }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

const REQUEST_BYTES_MAX = 65_536;
const DIMENSION = /^[a-z_]{1,64}$/;
const INPUT_FIELDS: ReadonlySet<string> = new Set([
  'accountId',
  'operationId',
  'route',
  'bound',
  'request',
  'requestRef',
  'tags',
  'endUser',
  'taskId',
  'askId',
]);

/** Takes anything. Which dimensions a route has, and how much of each, is checked by who knows the route. */
export function readRemoteJobInput(raw: unknown): ReadJobInput {
  if (!isRecord(raw)) {
    const message = `is ${say(raw)}; give one object, such as {"accountId": "acme", …}`;
    return { kind: 'problems', problems: [{ field: 'input', message }] };
  }
  const problems = [
    ...idProblems(raw),
    ...boundProblems(raw['bound']),
    ...requestChoiceProblems(raw, jobRequestProblems),
    ...tagProblems(raw['tags']),
    ...unknownFieldProblems(raw, 'remoteJob', INPUT_FIELDS),
  ];
  return problems.length > 0
    ? { kind: 'problems', problems }
    : { kind: 'input', input: raw as unknown as RemoteJobInput };
}

/** A bound of zero buys nothing, and is refused like one that is missing. */
function boundProblems(bound: unknown): Problem[] {
  if (!isRecord(bound) || Object.keys(bound).length === 0) {
    const message = `is ${say(bound)}; give what may be bought at most, such as {"ticks": 20}`;
    return [{ field: 'bound', message }];
  }
  return Object.entries(bound).flatMap(([dimension, count]) => {
    const field = `bound.${dimension}`;
    if (!DIMENSION.test(dimension)) {
      return [{ field, message: 'is no dimension; give 1 to 64 of a-z and underscore' }];
    }
    return Number.isSafeInteger(count) && (count as number) >= 1
      ? []
      : [{ field, message: `is ${say(count)}; give a whole number, 1 or more` }];
  });
}

/** What the route allows of a bound: exactly its dimensions, each up to its most. */
export function boundProblemsOnRoute(bound: Usage, boundMax: Usage): Problem[] {
  const missing = Object.keys(boundMax).filter((dimension) => !(dimension in bound));
  const known = Object.keys(boundMax).join(', ') || 'none';
  return [
    ...missing.map((dimension) => ({
      field: `bound.${dimension}`,
      message: `is missing; give a whole number, 1 to ${boundMax[dimension] ?? 0}`,
    })),
    ...Object.entries(bound).flatMap(([dimension, count]) => {
      const field = `bound.${dimension}`;
      const most = boundMax[dimension];
      if (most === undefined) {
        return [{ field, message: `is no dimension of this route; it has ${known}` }];
      }
      return count <= most
        ? []
        : [{ field, message: `is ${count}; give a whole number, 1 to ${most}` }];
    }),
  ];
}

/** Also for a request that came by reference. */
export function jobRequestProblems(request: unknown): Problem[] {
  if (!isRecord(request)) {
    return [{ field: 'request', message: `is ${say(request)}; give an object` }];
  }
  const byteCount = utf8ByteCount(JSON.stringify(request));
  return byteCount <= REQUEST_BYTES_MAX
    ? []
    : [
        {
          field: 'request',
          message: `has ${byteCount} bytes; at most ${REQUEST_BYTES_MAX} are taken`,
        },
      ];
}
