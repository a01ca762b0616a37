import {
  WithStartWorkflowOperation,
  WorkflowFailedError,
  type WorkflowHandle,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OperationResult } from '../../domain/operation-result.js';
import { readOperation } from '../../ledger/read.js';
import { saveHistory } from '../support/save-history.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;
type Job = WorkflowHandle<() => Promise<OperationResult>>;

beforeAll(async () => {
  stage = await superviseFor({ label: 'jobs', limit: 1_000n });
});
afterAll(async () => {
  await stage.books.expectBooksWhole();
  await stage.close();
});

const read = (operationId: string) =>
  readOperation(stage.books.ledger, { accountId: stage.accountId, operationId });

async function running(operationId: string, input?: object): Promise<Job> {
  const handle = await stage.startJob(operationId, input);
  await expect
    .poll(async () => (await read(operationId))?.executionStatus, { timeout: 10_000 })
    .toBe('running');
  return handle;
}

const ticks = (count: number): Promise<void> => stage.provider.order('ticks', { count });
const message = { requestId: 'r-1', by: 'ada', reason: 'no longer needed' };

async function failureOf(handle: Job): Promise<string> {
  const error: unknown = await handle.result().catch((thrown: unknown) => thrown);
  if (!(error instanceof WorkflowFailedError)) throw new Error('it did not fail');
  if (!(error.cause instanceof ApplicationFailure)) throw new Error('it failed otherwise');
  return error.cause.message;
}

describe('a remote job, with nothing but the Temporal client', () => {
  test('is submitted once, followed, and settled by what its provider says', async () => {
    const handle = await running('settled');
    await ticks(20);
    await handle.executeUpdate('lookUpNowUpdate', { args: [message] });
    expect(await handle.result()).toMatchObject({
      ...{ outcome: 'settled', chargedAmount: '20', execution: 'completed', cancel: 'none' },
    });
    await saveHistory(handle, 'remote-job-0.1.0-settled');
  });

  test('is stopped by a signal, and says so only when its provider does', async () => {
    const handle = await running('stopped');
    await ticks(3);
    await handle.signal('requestCancel', message);
    expect(await handle.result()).toMatchObject({
      ...{ chargedAmount: '3', execution: 'cancelled', cancel: 'confirmed_stopped' },
    });
    await saveHistory(handle, 'remote-job-0.1.0-stopped-by-signal');
  });

  test.each([
    [{ bound: { ticks: 0 } }, 'bound.ticks is 0; give a whole number, 1 or more'],
    [{ bound: { ticks: 101 } }, 'bound.ticks is 101; give a whole number, 1 to 100'],
    [{ bound: { hours: 1 } }, 'bound.hours is no dimension of this route; it has ticks'],
    [{ route: 'fake-priced' }, 'route is "fake-priced", which is for calls; start it with llmCall'],
    [{ maxTokens: 4 }, 'maxTokens is not a field of remoteJob'],
  ])('%j is refused, and what is wrong is named', async (input, told) => {
    const handle = await stage.startJob(`bad-${JSON.stringify(input).length}`, input);
    expect(await failureOf(handle)).toContain(told);
  });
});

test('whoever waits for a job that is refused as wrong hears so, and it ends', async () => {
  const bad = { accountId: stage.accountId, route: 'fake-job', bound: { ticks: 0 }, request: {} };
  for (const update of ['awaitAnswer', 'requestCancelUpdate', 'lookUpNowUpdate']) {
    const workflowId = `job/${stage.accountId}/waited-for-${update}`;
    const heard = stage.temporal.workflow.executeUpdateWithStart(update, {
      ...(update !== 'awaitAnswer' && { args: [message] as [unknown] }),
      startWorkflowOperation: new WithStartWorkflowOperation('remoteJob', {
        ...{ taskQueue: 'holdfast', workflowId, args: [bad] as [unknown] },
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
    });
    await heard.catch(() => undefined);
    const handle = stage.temporal.workflow.getHandle<() => Promise<OperationResult>>(workflowId);
    expect(await failureOf(handle)).toContain('bound.ticks is 0');
  }
});

describe('a supervisor without a request', () => {
  test('takes a stored job up, asks, and sends nothing', async () => {
    const first = await running('taken-up');
    await first.terminate('test');
    const args = [{ accountId: stage.accountId, operationId: 'taken-up', stored: true }];
    const again = await stage.temporal.workflow.start<() => Promise<OperationResult>>('remoteJob', {
      ...{ taskQueue: 'holdfast', workflowId: first.workflowId, args: args as never },
    });
    await ticks(20);
    await again.executeUpdate('lookUpNowUpdate', { args: [message] });
    expect(await again.result()).toMatchObject({ outcome: 'settled', chargedAmount: '20' });
    const key = (await read('taken-up'))?.operationKey ?? '';
    expect(await stage.provider.receivedUnder(key)).toBe(1);
    await saveHistory(again, 'remote-job-0.1.0-taken-up-again');
  });

  test('of an operation that the ledger does not have is refused, by name', async () => {
    const handle = await stage.temporal.workflow.start<() => Promise<OperationResult>>(
      'remoteJob',
      {
        taskQueue: 'holdfast',
        workflowId: `job/${stage.accountId}/nobody`,
        args: [{ accountId: stage.accountId, operationId: 'nobody', stored: true }] as never,
      },
    );
    expect(await failureOf(handle)).toContain(
      `operationId is "nobody", which the ledger does not have for account "${stage.accountId}"`,
    );
  });
});

describe('updates of operators', () => {
  test('with bad fields are refused, each field by name, and leave no trace', async () => {
    const handle = await running('bad-update');
    const before = (await handle.describe()).historyLength;
    const bad = { requestId: '', by: 7, colour: 'red' };
    for (const update of ['requestCancelUpdate', 'lookUpNowUpdate']) {
      const refused = handle.executeUpdate(update, { args: [bad] });
      const error = (await refused.catch((thrown: unknown) => thrown)) as Error;
      const told = (error.cause as Error).message;
      for (const field of [
        'requestId is empty',
        'by is not a text',
        'reason is missing',
        'colour',
      ]) {
        expect(told).toContain(field);
      }
    }
    expect((await handle.describe()).historyLength).toBe(before);
    expect((await read('bad-update'))?.cancel).toBe('none');
    await handle.signal('requestCancel', message);
    await handle.result();
  });

  test('every handler survives a cancelled workflow', async () => {
    await stage.provider.behave({ times: 1, do: { cancel: { lies: true } } });
    const handle = await running('cancelled');
    const waiting = handle.executeUpdate('awaitAnswer');
    await handle.cancel();
    await expect
      .poll(async () => (await read('cancelled'))?.cancel, { timeout: 10_000 })
      .toBe('acknowledged');
    expect(await handle.executeUpdate('admit', { args: [{}] })).toMatchObject({
      status: 'admitted',
    });
    expect(await handle.executeUpdate('requestCancelUpdate', { args: [message] })).toMatchObject({
      status: 'requested',
      report: { status: 'still_running' },
    });
    expect(await handle.executeUpdate('lookUpNowUpdate', { args: [message] })).toContain(
      'has heard it',
    );
    expect(await handle.query('result')).toBeNull();
    await handle.signal('requestCancel', message);
    await handle.signal('lookUpNow');
    await handle.cancel();
    await ticks(20);
    await handle.executeUpdate('lookUpNowUpdate', { args: [message] });
    expect(await waiting).toMatchObject({ status: 'settled_without_answer' });
    await expect(handle.result()).rejects.toThrow();
    expect((await handle.describe()).status.name).toBe('CANCELLED');
    expect(await handle.query('result')).toMatchObject({
      ...{ outcome: 'settled', chargedAmount: '20', cancel: 'not_honoured' },
    });
  });
});
