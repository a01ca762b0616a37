// Task report
// -----------
// Where a task stands: each step with what is known of it, and the sums. A task is finished when its
// operations are; its answer may come earlier. What is unknown stands beside every sum.

import { tableRow } from './explain.js';
import { formatAmount, type Unit } from './money.js';
import type { OperationResult } from './operation-result.js';
import { reportStop, type StopStatus } from './stop.js';
import type { OperationSnapshot } from './snapshot.js';

export type StepStatus =
  /** Waits for the steps that it comes after. */
  | 'waiting'
  | 'started'
  /** Its answer is there, and its charge is not known yet. */
  | 'answered'
  | 'ended'
  /** Never started: a step before it ended without an answer, or the task was to stop. */
  | 'skipped'
  | 'invalid';

export interface StepReport {
  readonly id: string;
  readonly operationId: string;
  readonly status: StepStatus;
  readonly outcome: OperationResult['outcome'] | null;
  readonly answerRef: string | null;
  readonly unit: Unit | null;
  /** Null until a charge is confirmed. */
  readonly chargedAmount: string | null;
  /** Null where the ledger was not asked, or has no such operation. */
  readonly heldAmount: string | null;
  readonly isUnknown: boolean;
  /** What became of a wish to stop it; null where there was none. */
  readonly stop: StopStatus | null;
  /** A sentence for people. */
  readonly text: string;
}

export interface TaskReport {
  readonly taskId: string;
  readonly accountId: string;
  readonly status: 'running' | 'answered' | 'finished' | 'refused';
  readonly isStopWanted: boolean;
  readonly steps: readonly StepReport[];
  /** Why the task was not begun; null where it was. */
  readonly problem: string | null;
}

export function reportStep(
  step: {
    readonly id: string;
    readonly operationId: string;
    readonly status: StepStatus;
    readonly problem: string | undefined;
    readonly isRefused: boolean;
  },
  snapshot: OperationSnapshot | undefined,
  isStopWanted: boolean,
): StepReport {
  const { id, operationId, status, problem, isRefused } = step;
  const empty = {
    outcome: isRefused ? ('refused' as const) : null,
    answerRef: null,
    unit: null,
    chargedAmount: null,
    heldAmount: null,
  };
  if (snapshot === undefined) {
    return {
      ...{ id, operationId, status },
      ...empty,
      isUnknown: false,
      stop: null,
      text: problem ?? TEXTS[status],
    };
  }
  const stop = reportStop(snapshot);
  const unit = snapshot.attempts.at(-1)?.unit ?? null;
  const held = BigInt(stop.heldAmount);
  const say = (digits: string): string => formatAmount(BigInt(digits), unit ?? 'credit');
  const money = [
    stop.chargedAmount === null ? 'charge unknown yet' : `charged ${say(stop.chargedAmount)}`,
    ...(held > 0n ? [`holds ${say(stop.heldAmount)}`] : []),
  ].join(', ');
  return {
    ...{ id, operationId, status },
    outcome: snapshot.outcome,
    answerRef: snapshot.answerRef,
    unit,
    chargedAmount: stop.chargedAmount,
    heldAmount: stop.heldAmount,
    isUnknown: snapshot.state === 'unknown',
    stop: isStopWanted ? stop.status : null,
    text: isStopWanted ? stop.text : `${snapshot.state}; ${money}`,
  };
}

const TEXTS: Readonly<Record<StepStatus, string>> = {
  waiting: 'waits for the steps before it; nothing is held',
  started: 'started; its own page tells what it holds',
  answered: 'answered; its charge is not known yet',
  ended: 'ended',
  skipped: 'never started; nothing was held and nothing was sent',
  invalid: 'refused; nothing was held and nothing was sent',
};

/** One line a step, for the page of the task; Temporal's tab Relationships leads to their own pages. */
export function describeTask(report: TaskReport): string {
  const head = `Task ${report.taskId}: ${report.status}${report.isStopWanted ? ', a stop is wanted' : ''}`;
  const id = report.taskId;
  return [
    ...[head, ...(report.problem === null ? [] : ['', report.problem]), ''],
    ...[tableRow(['Step', 'Status', 'What is known']), '|:--|:--|:--|'],
    ...report.steps.map((step) => tableRow([step.id, step.status, step.text])),
    ...['', '```', `holdfast task show ${id}`, `holdfast task cancel ${id} --reason "why"`, '```'],
  ].join('\n');
}
