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
