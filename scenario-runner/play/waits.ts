// Waiting for a state: every wait has an end, and a sentence for it.

import { WorkflowNotFoundError } from '@temporalio/client';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import type { StepOf } from '../language/steps.js';
import { WaitedInVain } from './check.js';
import { callOf, operationOf, type Play, type PlayedCall } from './play.js';
import { waitUntil } from './wait-until.js';
import { withLimit } from './with-limit.js';

export async function waitFor(play: Play, step: StepOf<'wait_for'>): Promise<void> {
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

const QUESTION_LIMIT_MS = 3_000;

/** Has the provider asked now, and goes on when the ledger shows it, or that nobody can be asked. */
export async function lookUp(play: Play, name: string): Promise<void> {
  const call = callOf(play, name);
  const before = countQuestions(await operationOf(play, call));
  try {
    await call.handle.lookUpNow('the scenario says so');
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    // It asked by itself in the meantime, and has ended: there is nothing left to ask about.
    play.tell(`"${name}" has ended already`);
    return;
  }
  const until = performance.now() + QUESTION_LIMIT_MS;
  while (performance.now() < until) {
    const snapshot = await operationOf(play, call);
    if (snapshot === undefined || snapshot.outcome !== null) return;
    if (countQuestions(snapshot) > before) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  play.tell(`nobody was asked about "${name}"`);
}

function countQuestions(snapshot: OperationSnapshot | undefined): number {
  return (snapshot?.attempts ?? []).reduce((sum, attempt) => sum + attempt.questionCount, 0);
}

async function stateOf(play: Play, call: PlayedCall): Promise<string> {
  const snapshot = await operationOf(play, call);
  return snapshot === undefined ? 'not in the ledger' : snapshot.state;
}

async function hasReached(
  play: Play,
  call: PlayedCall,
  reaches: StepOf<'wait_for'>['reaches'],
): Promise<boolean> {
  const snapshot = await operationOf(play, call);
  if (snapshot === undefined) return false;
  if (reaches === 'received') {
    const newest = snapshot.attempts.at(-1)?.attemptKey ?? '';
    return (await play.stage.provider.receivedUnder(newest)) > 0;
  }
  if (reaches === 'answered') return snapshot.answerRef !== null;
  return snapshot.state === reaches;
}
