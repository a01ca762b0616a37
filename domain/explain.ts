// Explain
// -------
// Plain English for people: where an operation stands, and what happens next.

import { formatAmount } from './money.js';
import { describeRefusal } from './refusal.js';
import type { AttemptSnapshot, OperationSnapshot } from './snapshot.js';
import { describeCancel } from './stop.js';

export function explainOperation(snapshot: OperationSnapshot): string {
  const head = `Operation "${snapshot.operationId}" of account "${snapshot.accountId}" is ${STATES[snapshot.state]}`;
  const lines = [head, ...snapshot.attempts.map(explainAttempt)];
  const cancel = describeCancel(snapshot);
  if (cancel !== undefined) lines.push(cancel);
  for (const { kind, at } of snapshot.alerts)
    lines.push(`Alert ${kind} since ${sayTime(at)}: see docs/runbook.md.`);
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
  return `for ${count} ${unit}${count === 1 ? '' : 's'}, since ${sayTime(unknownSince)}`;
}

/** To the second: more is of no use to people. */
function sayTime(iso: string): string {
  return `${new Date(iso).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const AGES: readonly (readonly [number, string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
];

/** What is proved as a minimum, where there is such a thing. */
function sayFloor({ floorAmount, unit }: AttemptSnapshot): string {
  const floor = BigInt(floorAmount);
  return floor === 0n ? '' : ` charged at least ${formatAmount(floor, unit)} so far;`;
}

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
      return `${name}: the provider is working on it;${sayFloor(attempt)} holds ${say(attempt.heldAmount)}; asked ${asked}.`;
    case 'unknown':
      return (
        `${name}: unknown ${sayAge(attempt)} ` +
        `(${attempt.reasons.map((entry) => entry.reason).join(', ')});${sayFloor(attempt)} holds ${say(attempt.heldAmount)}; ` +
        `asked ${asked}; last answer: ${attempt.lastAnswer ?? 'none yet'}; ` +
        `next question ${attempt.nextQuestionDueAt === null ? 'now' : sayTime(attempt.nextQuestionDueAt)}.`
      );
    case 'withdrawn':
      return `${name}: withdrawn, never sent; nothing is held.`;
    case 'free':
      return `${name}: not charged (${attempt.proof ?? ''}); nothing is held.`;
    case 'charged':
      return `${name}: charged ${attempt.chargedAmount === null ? 'unknown' : say(attempt.chargedAmount)}, by ${attempt.pricedBy === 'provider' ? "the provider's own word" : 'its reported usage and the price book'}.`;
  }
}

/** The Temporal UI draws tables without room between their columns, so each cell brings its own. */
const CELL_GAP = '\u00a0\u00a0\u00a0';

/** One row of a Markdown table; what a provider said must not end a cell. */
export function tableRow(cells: readonly string[]): string {
  const plain = cells.map((cell) => cell.replace(/[|\r\n]+/g, ' '));
  return `| ${plain.join(`${CELL_GAP} | `)} |`;
}

/**
 * Markdown for the page of one operation: the figures, the commands that help, and the story. The
 * Temporal UI takes it in an address, so it must stay short.
 */
export function describeDetails(snapshot: OperationSnapshot): string {
  const rows = figuresOf(snapshot).map(tableRow);
  const key = snapshot.operationKey;
  const commands = [
    `holdfast ops show ${key}`,
    `holdfast ops lookup ${key}`,
    // In two lines: one would be wider than its column.
    ...(snapshot.outcome === null ? [`holdfast ops cancel ${key} \\`, '  --reason "why"'] : []),
  ];
  return [
    ...['| | |', '|---|---|', ...rows, ''],
    ...['```', ...commands, '```', ''],
    ...explainOperation(snapshot)
      .split('\n')
      .map((line) => `- ${line}`),
    '- The tab Pending Activities tells the newest answer.',
  ].join('\n');
}

function figuresOf(snapshot: OperationSnapshot): [string, string][] {
  const newest = snapshot.attempts.at(-1);
  const held = snapshot.attempts.reduce((sum, each) => sum + BigInt(each.heldAmount), 0n);
  const due = snapshot.outcome === null ? (newest?.nextQuestionDueAt ?? null) : null;
  return [
    ['State', snapshot.state === 'unknown' ? '**UNKNOWN**' : snapshot.state],
    ['Held', formatAmount(held, newest?.unit ?? 'credit')],
    ['Last answer', newest?.lastAnswer ?? 'none yet'],
    ['Next question', due === null ? 'none' : sayTime(due)],
    ['Execution', snapshot.executionStatus],
    ['Wish to stop', snapshot.cancel],
    ['Needs an operator', snapshot.needsOperator ? '**yes**' : 'no'],
    ...readAt(newest).map((at): [string, string] => ['As of', at]),
  ];
}

/** When the ledger was read: known only of what counts its age. */
function readAt(attempt: AttemptSnapshot | undefined): string[] {
  const { unknownSince = null, unknownMs = null } = attempt ?? {};
  if (unknownSince === null || unknownMs === null) return [];
  const atMs = new Date(unknownSince).getTime() + unknownMs;
  return [sayTime(new Date(atMs).toISOString())];
}
