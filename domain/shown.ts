// Shown
// -----
// What people see of an operation in lists. Two snapshots with the same text look the same there, so
// that nobody writes twice what has not changed.

import type { OperationSnapshot } from './snapshot.js';

export function shownOf(snapshot: OperationSnapshot): string {
  const newest = snapshot.attempts.at(-1);
  const held = snapshot.attempts.map((attempt) => attempt.heldAmount);
  const { state, cancel, executionStatus, needsOperator } = snapshot;
  return JSON.stringify([
    ...[state, cancel, executionStatus, needsOperator],
    ...[newest?.provider, newest?.remoteId, held],
  ]);
}
