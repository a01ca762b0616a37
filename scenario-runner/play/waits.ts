// Waiting for a state: every wait has an end, and a sentence for it.

import { randomUUID } from 'node:crypto';
import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { StepOf } from '../language/steps.js';
import { WaitedInVain } from './check.js';
import {
  callOf,
  operationOf,
  type Play,
  type PlayedCall,
  type PlayedTask,
  workflowIdOf,
} from './play.js';
import { waitUntil } from './wait-until.js';
import { withLimit } from './with-limit.js';

export async function waitFor(play: Play, step: StepOf<'wait_for'>): Promise<void> {
  const task = play.tasks.get(step.wait_for);
  if (task !== undefined) {
    await waitForTask(task, step);
    return;
  }
  const call = callOf(play, step.wait_for);
  const sentence = `"${step.wait_for}" reaches ${step.reaches}`;
  if (step.reaches === 'ended') {
    const failure = (): Error => new WaitedInVain(`waited ${step.limit} ms in vain: ${sentence}`);
    await withLimit(call.handle.result(), step.limit, failure);
    return;
  }
  let last = 'nothing';
  await waitUntil(
    () => `${sentence}; last it was ${last}`,
    async () => {
      last = await stateOf(play, call);
      return (await hasReached(play, call, step.reaches)) ? true : undefined;
    },
    step.limit,
  );
}

/** `answered` when its report says so, `ended` when the task has finished. */
async function waitForTask(
  task: PlayedTask,
  { wait_for: name, reaches, limit }: StepOf<'wait_for'>,
): Promise<void> {
  let last = 'nothing';
  await waitUntil(
    () => `"${name}" reaches ${reaches}; last it was ${last}`,
    async () => {
      const { status } = await task.handle.report();
      last = status;
      const isFinished = status === 'finished' || status === 'refused';
      return isFinished || (reaches === 'answered' && status === 'answered') ? true : undefined;
    },
    limit,
  );
}

const QUESTION_LIMIT_MS = 3_000;

/** Has the provider asked now, and goes on when it has answered, or when nobody can be asked. */
export async function lookUp(play: Play, name: string): Promise<void> {
  const { temporal } = play.stage;
  const workflow = temporal.workflow.getHandle(workflowIdOf(play, name));
  const message = { requestId: randomUUID(), by: 'scenario', reason: 'the scenario says so' };
  try {
    await temporal.withDeadline(Date.now() + QUESTION_LIMIT_MS, () =>
      workflow.executeUpdate('lookUpNowUpdate', { args: [message] }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
      play.tell(`nobody was asked about "${name}"`);
      return;
    }
    const hasEnded =
      error instanceof WorkflowNotFoundError || error instanceof WorkflowUpdateFailedError;
    if (!hasEnded) throw error;
    // It asked by itself in the meantime, and has ended: there is nothing left to ask about.
    play.tell(`"${name}" has ended already`);
  }
}

async function stateOf(play: Play, call: PlayedCall): Promise<string> {
  const snapshot = await operationOf(play, call);
  return snapshot === undefined ? 'not in the ledger' : snapshot.state;
}

async function isStarted(play: Play, { handle }: PlayedCall): Promise<boolean> {
  try {
    await play.stage.temporal.workflow.getHandle(handle.workflowId).describe();
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

async function hasReached(
  play: Play,
  call: PlayedCall,
  reaches: StepOf<'wait_for'>['reaches'],
): Promise<boolean> {
  // Its workflow is there, whether anything stands in the ledger yet or not.
  if (reaches === 'started') return isStarted(play, call);
  const snapshot = await operationOf(play, call);
  if (snapshot === undefined) return false;
  if (reaches === 'received') {
    const newest = snapshot.attempts.at(-1)?.attemptKey ?? '';
    return (await play.stage.provider.receivedUnder(newest)) > 0;
  }
  if (reaches.startsWith('cancel_')) return `cancel_${snapshot.cancel}` === reaches;
  if (reaches === 'answered') return snapshot.answerRef !== null;
  return snapshot.state === reaches;
}
