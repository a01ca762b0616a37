// Search attributes
// -----------------
// How people find operations in the Temporal UI. Changed on transitions only, in one upsert; never
// decide money from them.

import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import type { SearchAttributeUpdatePair } from '@temporalio/common';
import type { OperationSnapshot } from '../domain/snapshot.js';

const HOLDFAST_STATE = defineSearchAttributeKey('HoldfastState', SearchAttributeType.KEYWORD);
const HOLDFAST_PROVIDER = defineSearchAttributeKey('HoldfastProvider', SearchAttributeType.KEYWORD);
const HOLDFAST_BUDGET = defineSearchAttributeKey('HoldfastBudget', SearchAttributeType.KEYWORD);
const HOLDFAST_TASK = defineSearchAttributeKey('HoldfastTask', SearchAttributeType.KEYWORD);
const HOLDFAST_REMOTE_ID = defineSearchAttributeKey(
  'HoldfastRemoteId',
  SearchAttributeType.KEYWORD,
);
const HOLDFAST_CANCEL = defineSearchAttributeKey('HoldfastCancel', SearchAttributeType.KEYWORD);
const HOLDFAST_UNKNOWN_SINCE = defineSearchAttributeKey(
  'HoldfastUnknownSince',
  SearchAttributeType.DATETIME,
);
const HOLDFAST_HELD_AMOUNT = defineSearchAttributeKey(
  'HoldfastHeldAmount',
  SearchAttributeType.INT,
);
const HOLDFAST_NEEDS_OPERATOR = defineSearchAttributeKey(
  'HoldfastNeedsOperator',
  SearchAttributeType.BOOL,
);

/** Name → Temporal's type, for registering. */
export const SEARCH_ATTRIBUTE_TYPES = {
  HoldfastState: 'Keyword',
  HoldfastProvider: 'Keyword',
  HoldfastBudget: 'Keyword',
  HoldfastTask: 'Keyword',
  HoldfastRemoteId: 'Keyword',
  HoldfastCancel: 'Keyword',
  HoldfastUnknownSince: 'Datetime',
  HoldfastHeldAmount: 'Int',
  HoldfastNeedsOperator: 'Bool',
} as const;

const KEYWORD_LENGTH_MAX = 255;

/**
 * All attributes of an operation; `shownState` is what the list shows, which is `dispatched` from
 * the moment that the send is handed out. The amount is exact up to 2^53, for sorting only.
 */
export function searchAttributesOf(
  snapshot: OperationSnapshot,
  shownState: string,
): SearchAttributeUpdatePair[] {
  const open = snapshot.attempts.filter((attempt) => attempt.heldAmount !== '0');
  const held = open.reduce((sum, attempt) => sum + BigInt(attempt.heldAmount), 0n);
  const newest = snapshot.attempts.at(-1);
  const unknownSince = snapshot.attempts.find(
    (attempt) => attempt.phase === 'unknown',
  )?.unknownSince;
  return [
    { key: HOLDFAST_STATE, value: shownState },
    { key: HOLDFAST_PROVIDER, value: newest?.provider ?? '' },
    { key: HOLDFAST_BUDGET, value: keyword(snapshot.budgetIds.join(',')) },
    { key: HOLDFAST_TASK, value: snapshot.taskId ?? '' },
    { key: HOLDFAST_REMOTE_ID, value: keyword(newest?.remoteId ?? '') },
    { key: HOLDFAST_CANCEL, value: snapshot.cancel },
    {
      key: HOLDFAST_UNKNOWN_SINCE,
      value: (unknownSince ?? null) === null ? null : new Date(unknownSince ?? 0),
    },
    { key: HOLDFAST_HELD_AMOUNT, value: Number(held) },
    { key: HOLDFAST_NEEDS_OPERATOR, value: snapshot.needsOperator },
  ];
}

/** A task has none of an operation's: lists of operations must not show it. */
export function taskSearchAttributes(taskId: string): SearchAttributeUpdatePair[] {
  return [{ key: HOLDFAST_TASK, value: keyword(taskId) }];
}

function keyword(text: string): string {
  return text.slice(0, KEYWORD_LENGTH_MAX);
}
