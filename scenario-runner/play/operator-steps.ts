// Operator steps
// --------------
// What operators and accidents do to supervisors: wishes by every way there is, resets, deletions, and
// a sweep.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createSupervisors } from '../../client/supervisors.js';
import type { StepOf } from '../language/steps.js';
import { PlayError } from './check.js';
import { callOf, check, operationOf, type Play, workflowIdOf } from './play.js';

const WISH = { by: 'scenario', reason: 'the scenario says so' };

export async function cancel(play: Play, step: StepOf<'cancel'>): Promise<void> {
  const workflow = play.stage.temporal.workflow.getHandle(workflowIdOf(play, step.cancel));
  for (let time = 1; time <= step.times; time += 1) {
    const message = { ...WISH, requestId: `${step.cancel}-${time}` };
    switch (step.via) {
      case 'temporal':
        await workflow.cancel();
        break;
      case 'signal':
        await workflow.signal('requestCancel', message);
        break;
      case 'update':
        await workflow.executeUpdate('requestCancelUpdate', { args: [message] });
        break;
      case 'operator':
        await cancelAsOperator(play, step.cancel);
        break;
    }
  }
}

/** From the command line: the ledger has the wish first, and whoever supervises is only woken. */
async function cancelAsOperator(play: Play, name: string): Promise<void> {
  const task = play.tasks.get(name);
  const answer =
    task === undefined
      ? await runHoldfast(play, ['ops', 'cancel', await keyOf(play, name), '--reason', WISH.reason])
      : await runHoldfast(play, ['task', 'cancel', task.taskId, '--reason', WISH.reason]);
  play.tell(`the wish to stop "${name}": ${JSON.stringify(answer)}`);
}

async function keyOf(play: Play, name: string): Promise<string> {
  const snapshot = await operationOf(play, callOf(play, name));
  if (snapshot === undefined) throw new PlayError(`"${name}" is not in the ledger`);
  return snapshot.operationKey;
}

/** One command, as an operator would type it; what it prints with `--json`. */
async function runHoldfast(play: Play, args: readonly string[]): Promise<unknown> {
  const { databaseUrl, temporalAddress, temporal, taskQueue } = play.stage;
  const env = {
    ...process.env,
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporalAddress,
    TEMPORAL_NAMESPACE: temporal.options.namespace,
    HOLDFAST_TASK_QUEUE: taskQueue,
    LOG_LEVEL: 'error',
  };
  const program = join(play.distDir, 'cli', 'main.js');
  const command = [program, ...args, '--json'];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, command, { env });
    return JSON.parse(stdout);
  } catch (error) {
    const { stderr = String(error) } = error as { stderr?: string };
    throw new PlayError(`holdfast ${args.join(' ')}: ${stderr.trim()}`);
  }
}

export async function signal(play: Play, step: StepOf<'signal'>): Promise<void> {
  const workflow = play.stage.temporal.workflow.getHandle(workflowIdOf(play, step.signal));
  const args = step.payload === undefined ? [] : [step.payload];
  const BATCH = 100;
  for (let sent = 0; sent < step.times; sent += BATCH) {
    const count = Math.min(BATCH, step.times - sent);
    await Promise.all(Array.from({ length: count }, () => workflow.signal(step.named, ...args)));
  }
}

/** To where its first or its last workflow task began; signals that came later are applied again. */
export async function reset(play: Play, step: StepOf<'reset'>): Promise<void> {
  const { temporal } = play.stage;
  const workflowId = workflowIdOf(play, step.reset);
  const { events = [] } = await temporal.workflow.getHandle(workflowId).fetchHistory();
  const ended = (events ?? []).filter(
    (event) => (event.workflowTaskCompletedEventAttributes ?? null) !== null,
  );
  const point = step.to === 'first_task' ? ended[0] : ended.at(-1);
  if (point?.eventId === undefined || point.eventId === null) {
    throw new PlayError(`"${step.reset}" has no workflow task to go back to`);
  }
  const { runId } = await temporal.workflow.getHandle(workflowId).describe();
  await temporal.workflowService.resetWorkflowExecution({
    namespace: temporal.options.namespace,
    workflowExecution: { workflowId, runId },
    workflowTaskFinishEventId: point.eventId,
    reason: WISH.reason,
    requestId: globalThis.crypto.randomUUID(),
  });
}

export async function deleteWorkflow(play: Play, name: string): Promise<void> {
  const { temporal } = play.stage;
  await temporal.workflowService.deleteWorkflowExecution({
    namespace: temporal.options.namespace,
    workflowExecution: { workflowId: workflowIdOf(play, name) },
  });
  const until = performance.now() + 10_000;
  while (performance.now() < until) {
    const found = await createSupervisors(temporal, play.stage.taskQueue).look(
      workflowIdOf(play, name),
    );
    if (found.why === 'there is no such workflow') return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new PlayError(`"${name}" was deleted, and is still there after 10 s`);
}

/** From the command line, without a grace: whoever is overdue now. */
export async function sweepNow(play: Play, step: StepOf<'sweep'>, line: number): Promise<void> {
  const { swept } = (await runHoldfast(play, ['sweep', '--grace', '0s'])) as SweepPrinted;
  for (const { workflowId, status, why } of swept) play.tell(`${workflowId}: ${status}, ${why}`);
  if (step.restarted === undefined) return;
  const started = swept.filter(
    ({ status }) => status === 'restarted' || status === 'restarted_stuck',
  );
  check(play, {
    ...{ name: 'sweep restarted', expected: String(step.restarted) },
    ...{ actual: String(started.length), source: 'holdfast sweep', line },
  });
}

interface SweepPrinted {
  readonly swept: readonly {
    readonly workflowId: string;
    readonly status: string;
    readonly why: string;
  }[];
}
