import { fileURLToPath } from 'node:url';
import type { WorkflowFailedError, WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createHoldfastClient } from '../../client/holdfast-client.js';
import { scheduleSweeps, SWEEPER_SCHEDULE_ID } from '../../client/set-up-namespace.js';
import { createSupervisors } from '../../client/supervisors.js';
import type { TaskReport } from '../../domain/task-report.js';
import { readOperation } from '../../ledger/read.js';
import { saveHistory } from '../support/save-history.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;
let taskCount = 0;

beforeAll(async () => {
  stage = await superviseFor({ label: 'tasks', limit: 1_000n });
});
afterAll(async () => {
  await stage.books.expectBooksWhole();
  await stage.close();
});

const read = (operationId: string) =>
  readOperation(stage.books.ledger, { accountId: stage.accountId, operationId });
const ticks = (count: number): Promise<void> => stage.provider.order('ticks', { count });
const job = { route: 'fake-job', bound: { ticks: 10 }, request: {} };
const call = {
  ...{ route: 'fake-priced', maxTokens: 4 },
  request: { messages: [{ role: 'user', content: 'Count.' }] },
};

async function untilRunning(operationId: string): Promise<void> {
  await expect
    .poll(async () => (await read(operationId))?.executionStatus, { timeout: 10_000 })
    .toBe('running');
}

async function startTask(input: object): Promise<WorkflowHandle<() => Promise<TaskReport>>> {
  taskCount += 1;
  return stage.temporal.workflow.start<() => Promise<TaskReport>>('agentTask', {
    taskQueue: 'holdfast',
    workflowId: `task/t-${stage.accountId}-${taskCount}`,
    args: [{ accountId: stage.accountId, ...input }] as never,
  });
}

const taskIdOf = (handle: { readonly workflowId: string }): string =>
  handle.workflowId.slice('task/'.length);

describe('an agent task, with nothing but the Temporal client', () => {
  test('runs its steps in order, and is finished when its operations are', async () => {
    const handle = await startTask({
      steps: [
        { id: 'draft', call },
        { id: 'render', after: ['draft'], job },
      ],
    });
    await untilRunning(`${taskIdOf(handle)}/render`);
    const report = await handle.executeUpdate<TaskReport, []>('taskReportUpdate');
    expect(
      report.steps.map(({ id, status, chargedAmount }) => [id, status, chargedAmount]),
    ).toEqual([
      ['draft', 'ended', '4'],
      ['render', 'started', null],
    ]);
    await ticks(10);
    expect(await handle.result()).toMatchObject({ status: 'finished' });
    await saveHistory(handle, 'agent-task-0.1.0-finished');
  });

  test('that is to stop reports each step with its amount, and starts nothing more', async () => {
    const handle = await startTask({
      steps: [
        { id: 'one', job },
        { id: 'two', after: ['one'], job },
      ],
    });
    await untilRunning(`${taskIdOf(handle)}/one`);
    await ticks(2);
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow();
    const report = await handle.query<TaskReport>('taskReport');
    expect(report.steps).toMatchObject([
      { id: 'one', stop: 'stopped', chargedAmount: '2', heldAmount: '0' },
      { id: 'two', status: 'skipped', stop: null },
    ]);
    await saveHistory(handle, 'agent-task-0.1.0-stopped');
  });

  test.each([
    [
      {
        steps: [
          { id: 'a', after: ['b'], call },
          { id: 'b', after: ['a'], call },
        ],
      },
      'wait for each other for ever: a after b after a',
    ],
    [
      { steps: Array.from({ length: 10_000 }, (_, no) => ({ id: `s${no}`, call: {} })) },
      'steps has 10000 steps; at most 500 are taken',
    ],
    [
      { steps: [{ id: 'a', job: { ...job, bound: { ticks: 0 } } }] },
      'steps[0].job.bound.ticks is 0',
    ],
    [{ steps: [] }, 'steps is []; give a list of at least one step'],
    [{ budget: { unit: 'credit', limit: 5 }, steps: [{ id: 'a', call }] }, 'budget.limit is 5'],
  ])('a plan is refused, and what is wrong is named: %#', async (input, told) => {
    const handle = await startTask(input);
    const error: unknown = await handle.result().catch((thrown: unknown) => thrown);
    expect((error as WorkflowFailedError).cause).toBeInstanceOf(ApplicationFailure);
    expect(((error as WorkflowFailedError).cause as Error).message).toContain(told);
  });

  test('a step that is refused as wrong is told with its reason, and ends nothing else', async () => {
    const handle = await startTask({
      steps: [
        { id: 'wrong', job: { ...job, route: 'nowhere' } },
        { id: 'right', call },
        { id: 'later', after: ['wrong'], call },
      ],
    });
    const report = await handle.result();
    expect(report.steps).toMatchObject([
      { id: 'wrong', status: 'invalid' },
      { id: 'right', status: 'ended', chargedAmount: '4' },
      { id: 'later', status: 'skipped' },
    ]);
    expect(report.steps[0]?.text).toContain('route is "nowhere", which is not configured');
  });

  test('does not take work for its own that stood under the id of a step before', async () => {
    const handle = await startTask({
      taskId: `taken-${stage.accountId}`,
      steps: [{ id: 'mine', job }],
    });
    const operationId = `taken-${stage.accountId}/mine`;
    await untilRunning(operationId);
    await handle.terminate('test');
    const again = await startTask({
      taskId: `taken-${stage.accountId}`,
      steps: [{ id: 'mine', job: { ...job, bound: { ticks: 30 } } }],
    });
    const report = await again.result();
    expect(report.steps[0]).toMatchObject({ status: 'ended', outcome: 'refused' });
    expect((await read(operationId))?.state).toBe('dispatched');
    await ticks(10);
  });

  test('has a budget of its own that the work of nobody else is charged to', async () => {
    const budget = { unit: 'credit', limit: '5' };
    const taskId = `own-budget-${stage.accountId}`;
    const handle = await startTask({
      taskId,
      budget,
      steps: [
        { id: 'a', call },
        { id: 'b', job },
      ],
    });
    expect((await handle.result()).steps).toMatchObject([
      { id: 'a', outcome: 'settled' },
      { id: 'b', outcome: 'refused' },
    ]);
    const { rows } = await stage.books.admin.query(
      `select ledger.budgets_of_request('somebody-else', '{"taskId": "${taskId}"}') as others`,
    );
    expect(rows).toEqual([{ others: [] }]);
    const other = await startTask({
      ...{ taskId, accountId: 'somebody-else', budget, steps: [{ id: 'a', call }] },
    });
    expect(await other.result()).toMatchObject({ status: 'refused' });
  });

  test('an id is used once, by the typed client too', async () => {
    const taskId = `once-${stage.accountId}`;
    const input = { accountId: stage.accountId, taskId, steps: [{ id: 'a', call }] };
    const task = createHoldfastClient({ client: stage.temporal }).task(input);
    expect(await task.start()).toEqual({ status: 'started' });
    expect(await task.start()).toEqual({ status: 'exists' });
    expect(await task.result()).toMatchObject({ status: 'finished' });
    expect(await task.start()).toEqual({ status: 'exists' });
    expect((await task.awaitAnswer(1_000))?.status).toBe('finished');
  });
});

describe('an agent of somebody else', () => {
  test('has a job supervised in one line, adopts it when run again, and buys it once', async () => {
    const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
    const worker = await Worker.create({
      connection,
      taskQueue: 'own-agents',
      workflowsPath: fileURLToPath(new URL('./own-agent.ts', import.meta.url)),
    });
    await worker.runUntil(async () => {
      const options = {
        ...{ taskQueue: 'own-agents', workflowId: `agent-${stage.accountId}` },
        args: [stage.accountId, 'of-own-agent'] as [string, string],
      };
      const start = () =>
        stage.temporal.workflow.start<(...ids: [string, string]) => Promise<string>>(
          'ownAgent',
          options,
        );
      const first = await start();
      await untilRunning('of-own-agent');
      await first.terminate('test');
      const supervisors = createSupervisors(stage.temporal, 'holdfast');
      const supervisor = `job/${stage.accountId}/of-own-agent`;
      expect((await supervisors.look(supervisor)).supervisor).toBe('alive');
      const again = await start();
      await ticks(10);
      expect(await again.result()).toBe('settled 10');
    });
    await connection.close();
    const key = (await read('of-own-agent'))?.operationKey ?? '';
    expect(await stage.provider.receivedUnder(key)).toBe(1);
  });
});

describe('the sweeper', () => {
  const overdue = (): Promise<unknown> =>
    stage.books.admin.query("select ledger.move_clock(interval '10 minutes')");

  test('comes by its schedule, finds who is missing and who is stuck, and starts each once', async () => {
    await stage.startJob('missing');
    await stage.startJob('stuck');
    await untilRunning('missing');
    await untilRunning('stuck');
    const handleOf = (id: string) =>
      stage.temporal.workflow.getHandle(`job/${stage.accountId}/${id}`);
    await handleOf('missing').terminate('test');
    await handleOf('stuck').terminate('test');
    // A type that no worker knows: its task fails again and again, and it counts as running.
    await stage.temporal.workflow.start('nobodyKnows', {
      ...{ taskQueue: 'holdfast', workflowId: `job/${stage.accountId}/stuck` },
    });
    const supervisors = createSupervisors(stage.temporal, 'holdfast');
    await expect
      .poll(async () => (await supervisors.look(`job/${stage.accountId}/stuck`)).supervisor, {
        timeout: 30_000,
      })
      .toBe('stuck');
    await overdue();
    const schedule = { taskQueue: 'holdfast', everyMs: 1_000 };
    expect(await scheduleSweeps(stage.temporal, schedule)).toBe('created');
    expect(await scheduleSweeps(stage.temporal, schedule)).toBe('exists');
    try {
      for (const id of ['missing', 'stuck']) {
        await expect
          .poll(async () => (await read(id))?.alerts.map(({ kind }) => kind), { timeout: 20_000 })
          .toEqual([id === 'missing' ? 'supervisor_restarted' : 'supervisor_stuck']);
        await expect
          .poll(async () => (await supervisors.look(`job/${stage.accountId}/${id}`)).supervisor)
          .toBe('alive');
      }
    } finally {
      await stage.temporal.schedule.getHandle(SWEEPER_SCHEDULE_ID).delete();
    }
    await ticks(20);
    for (const id of ['missing', 'stuck']) {
      // It may have asked by itself meanwhile, and have ended.
      await handleOf(id)
        .signal('lookUpNow')
        .catch(() => undefined);
      await expect.poll(async () => (await read(id))?.outcome, { timeout: 10_000 }).toBe('settled');
      const key = (await read(id))?.operationKey ?? '';
      expect(await stage.provider.receivedUnder(key)).toBe(1);
    }
  });

  test('a schedule of that name for something else is told, and left alone', async () => {
    await stage.temporal.schedule.create({
      scheduleId: SWEEPER_SCHEDULE_ID,
      spec: { intervals: [{ every: '1 day' }] },
      action: { type: 'startWorkflow', workflowType: 'other', taskQueue: 'other', args: [] },
    });
    try {
      const status = await scheduleSweeps(stage.temporal, {
        taskQueue: 'holdfast',
        everyMs: 1_000,
      });
      expect(status).toBe('exists_otherwise');
    } finally {
      await stage.temporal.schedule.getHandle(SWEEPER_SCHEDULE_ID).delete();
    }
  });
});
