// What a route of the file comes to: its kind, which its provider decides, and its timings.

import type { Usage } from '../domain/observation.js';
import { DEFAULT_TIMINGS, type RouteTimings } from '../domain/route.js';
import type { ConfigText } from './config-schema.js';

/** Floors in production: asking or beating faster serves nobody, and providers limit lookups. */
const TIMING_FLOORS: Partial<RouteTimings> = { heartbeatMs: 5_000, questionFirstMs: 1_000 };

/** A route is for calls or for jobs, as its provider is. */
export function kindOf(
  name: string,
  text: ConfigText,
  problems: string[],
):
  | { readonly kind: 'call'; readonly maxTokensMax: number }
  | { readonly kind: 'job'; readonly boundMax: Usage } {
  const route = text.routes[name];
  const isJob = isForJobs(text, name);
  const { max_tokens_max: maxTokensMax, bound_max: boundMax } = route ?? {};
  const complain = (field: string, example: string, other: string): void => {
    problems.push(
      `routes.${name}: its provider runs ${isJob ? 'jobs' : 'calls'}; give ${field}, such as ${example}, and no ${other}`,
    );
  };
  if (isJob) {
    const isRight = boundMax !== undefined && Object.keys(boundMax).length > 0;
    if (!isRight || maxTokensMax !== undefined) {
      complain('bound_max', '{ ticks: 1000 }', 'max_tokens_max');
    }
    return { kind: 'job', boundMax: boundMax ?? {} };
  }
  if (maxTokensMax === undefined || boundMax !== undefined) {
    complain('max_tokens_max', '4096', 'bound_max');
  }
  return { kind: 'call', maxTokensMax: maxTokensMax ?? 1 };
}

export function timingsOf(
  name: string,
  { text, problems }: { readonly text: ConfigText; readonly problems: string[] },
): RouteTimings {
  const given = text.routes[name]?.timings ?? {};
  const timings: RouteTimings = {
    dispatchLimitMs: given.dispatch_limit_ms ?? DEFAULT_TIMINGS.dispatchLimitMs,
    heartbeatMs: given.heartbeat_ms ?? DEFAULT_TIMINGS.heartbeatMs,
    dispatchBeforeMs: given.dispatch_before_ms ?? DEFAULT_TIMINGS.dispatchBeforeMs,
    questionFirstMs: given.question_first_ms ?? DEFAULT_TIMINGS.questionFirstMs,
    questionMaxMs: given.question_max_ms ?? DEFAULT_TIMINGS.questionMaxMs,
  };
  if (!text.allow_short_timings) {
    for (const [field, floor] of Object.entries(TIMING_FLOORS)) {
      const value = timings[field as keyof RouteTimings];
      if (value < floor) {
        problems.push(
          `routes.${name}.timings: ${field} is ${value}; at least ${floor}, or set allow_short_timings: true in a test`,
        );
      }
    }
  }
  return timings;
}

export function isForJobs(text: ConfigText, route: string): boolean {
  return text.providers[text.routes[route]?.provider ?? '']?.kind === 'metered-jobs';
}
