// Lookup schedule
// ---------------
// When to ask a provider again. Intervals grow with the age of the question and never end: giving
// up would free money that may be owed.

export interface QuestionSchedule {
  /** The shortest interval, in milliseconds. */
  readonly firstMs: number;
  /** The longest interval, in milliseconds; keep it under a third of the provider's retention. */
  readonly maxMs: number;
}

/** The share of an attempt's age that passes before the next question. */
const AGE_SHARE = 0.5;
const JITTER_SHARE = 0.1;

/**
 * `ageMs` since the attempt became unknown; `retryAfterMs` from the provider, which wins when it is
 * longer, also over `maxMs`; `randomShare` in [0, 1) spreads callers by up to a tenth.
 */
export function nextQuestionDelayMs(
  schedule: QuestionSchedule,
  ageMs: number,
  extra: { readonly randomShare: number; readonly retryAfterMs?: number },
): number {
  const grown = Math.max(schedule.firstMs, Math.round(ageMs * AGE_SHARE));
  const bounded = Math.min(schedule.maxMs, grown);
  const spread = bounded + Math.round(bounded * JITTER_SHARE * extra.randomShare);
  return Math.max(spread, extra.retryAfterMs ?? 0);
}

/** So many of the shortest intervals is the shortest segment, and of the longest ones the longest. */
const SEGMENT_FIRST_COUNT = 450;
const SEGMENT_MAX_COUNT = 24;

/**
 * For how long one activity goes on asking, in milliseconds, before its supervisor looks at it again:
 * as long as the wait so far, so that a week of silence costs a dozen segments and not a thousand. With
 * the default timings 15 minutes to a day.
 */
export function segmentMs(schedule: QuestionSchedule, waitedMs: number): number {
  const least = schedule.firstMs * SEGMENT_FIRST_COUNT;
  const most = Math.max(least, schedule.maxMs * SEGMENT_MAX_COUNT);
  return Math.min(most, Math.max(least, waitedMs));
}
