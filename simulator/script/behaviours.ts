// Behaviours
// ----------
// The script: rules in the order they were added. The first that matches and has times left decides a request.
//
// 1. Every rule counts each request that fits its model and key, whether it decides it or not; `nth` is that count.
// 2. A rule is looked for before the body is read, so that a request can be dropped unread.

import type { Match, Rule } from './read-script.js';
import type { Switches } from './switches.js';

export type Arrival = { readonly key: string | null; readonly model: string | null };

type Entry = { readonly ruleId: number; readonly rule: Rule; seenCount: number; usedCount: number };

export type BehaviourJson = Rule & { id: number; seenCount: number; usedCount: number };

export type Behaviours = {
  readonly add: (rule: Rule) => BehaviourJson;
  readonly clear: () => void;
  readonly list: () => readonly BehaviourJson[];
  /** Whether the head alone says that this request is dropped unread. */
  readonly dropsUnread: (key: string | null) => boolean;
  /** Counts the request and answers the switches that decide it. */
  readonly take: (arrival: Arrival) => Switches;
};

export function createBehaviours(): Behaviours {
  let entries: Entry[] = [];
  let lastId = 0;
  const toJson = ({ ruleId, rule, seenCount, usedCount }: Entry): BehaviourJson => ({
    id: ruleId,
    ...rule,
    seenCount,
    usedCount,
  });
  return {
    add(rule) {
      lastId += 1;
      const entry: Entry = { ruleId: lastId, rule, seenCount: 0, usedCount: 0 };
      entries.push(entry);
      return toJson(entry);
    },
    clear() {
      entries = [];
    },
    list: () => entries.map(toJson),
    dropsUnread(key) {
      // A rule that also names a model cannot be decided yet, and may come first: then the body is needed.
      const first = entries.find(
        (entry) => fitsKey(entry.rule.match, key) && isDue(entry, entry.seenCount + 1),
      );
      return first?.rule.match?.model === undefined && first?.rule.do.drop === 'before_reading';
    },
    take({ key, model }) {
      const fitting = entries.filter(
        ({ rule: { match } }) =>
          fitsKey(match, key) && (match?.model === undefined || match.model === model),
      );
      for (const entry of fitting) entry.seenCount += 1;
      const winner = fitting.find((entry) => isDue(entry, entry.seenCount));
      if (winner === undefined) return {};
      winner.usedCount += 1;
      return winner.rule.do;
    },
  };
}

function fitsKey(match: Match | undefined, key: string | null): boolean {
  if (match?.key !== undefined && match.key !== key) return false;
  return match?.keyPrefix === undefined || key?.startsWith(match.keyPrefix) === true;
}

function isDue({ rule, usedCount }: Entry, seenCount: number): boolean {
  if (rule.times !== undefined && usedCount >= rule.times) return false;
  return rule.match?.nth === undefined || rule.match.nth === seenCount;
}
