// Explain
// -------
// Plain English for people: where an operation stands, and what happens next.

import { formatAmount } from './money.js';
import { describeRefusal } from './refusal.js';
import type { AttemptSnapshot, OperationSnapshot } from './snapshot.js';

export function explainOperation(snapshot: OperationSnapshot): string {
  const head = `Operation "${snapshot.operationId}" of account "${snapshot.accountId}" is ${STATES[snapshot.state]}`;
  const lines = [head, ...snapshot.attempts.map(explainAttempt)];
  if (snapshot.cancel !== 'none') lines.push(`A wish to stop it was made: ${snapshot.cancel}.`);
  if (snapshot.refusal !== null)
    lines.push(`It was refused once: ${describeRefusal(snapshot.refusal)}.`);
  return lines.join('\n');
}

const STATES: Readonly<Record<OperationSnapshot['state'], string>> = {
  held: 'admitted: its worst case is held, and nothing was sent yet.',
  dispatched: 'under way: it was sent, and its hold stays until the provider says what it cost.',
  unknown:
    'UNKNOWN: it may have been charged. The whole hold stays until somebody other than a clock says what it cost.',
  settled: 'settled: the charge is confirmed and booked.',
  released: 'released: it is proved that nothing was charged, and the hold was returned.',
};

/** It only gets older: the age is said in the largest whole unit that fits. */
function sayAge({ unknownMs, unknownSince }: AttemptSnapshot): string {
  if (unknownMs === null || unknownSince === null) return 'since a moment ago';
  const [size, unit] = AGES.find(([ms]) => unknownMs >= ms) ?? [1_000, 'second'];
  const count = Math.floor(unknownMs / size);
  return `for ${count} ${unit}${count === 1 ? '' : 's'}, since ${unknownSince}`;
}

const AGES: readonly (readonly [number, string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
];

function explainAttempt(attempt: AttemptSnapshot): string {
  const say = (digits: string): string => formatAmount(BigInt(digits), attempt.unit);
  const name = `Attempt ${attempt.attemptNo} on ${attempt.route}`;
  const asked = attempt.questionCount === 1 ? 'once' : `${attempt.questionCount} times`;
  switch (attempt.phase) {
    case 'not_sent':
      return `${name}: not sent; holds ${say(attempt.heldAmount)}.`;
    case 'sending':
      return `${name}: on its way; holds ${say(attempt.heldAmount)}.`;
    case 'in_flight':
      return `${name}: the provider is working on it; holds ${say(attempt.heldAmount)}; asked ${asked}.`;
    case 'unknown':
      return (
        `${name}: unknown ${sayAge(attempt)} ` +
        `(${attempt.reasons.map((entry) => entry.reason).join(', ')}); holds ${say(attempt.heldAmount)}; ` +
        `asked ${asked}; last answer: ${attempt.lastAnswer ?? 'none yet'}; ` +
        `next question ${attempt.nextQuestionDueAt ?? 'now'}.`
      );
    case 'withdrawn':
      return `${name}: withdrawn, never sent; nothing is held.`;
    case 'free':
      return `${name}: not charged (${attempt.proof ?? ''}); nothing is held.`;
    case 'charged':
      return `${name}: charged ${attempt.chargedAmount === null ? 'unknown' : say(attempt.chargedAmount)}, by ${attempt.pricedBy === 'provider' ? "the provider's own word" : 'its reported usage and the price book'}.`;
  }
}
