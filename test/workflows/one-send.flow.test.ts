import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readBudget, readOperation } from '../../ledger/read.js';
import { recordChargeReport } from '../../ledger/record.js';
import { waitUntil } from '../../scenario-runner/play/wait-until.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

let stage: Supervised;

beforeAll(async () => {
  stage = await superviseFor({
    label: 'one_send',
    limit: 10_000n,
    routes: {
      timings: {
        dispatchLimitMs: 15_000,
        heartbeatMs: 1_000,
        dispatchBeforeMs: 60_000,
        questionFirstMs: 150,
        questionMaxMs: 1_000,
      },
    },
  });
});
afterEach(async () => {
  await stage.provider.releaseAll();
  await stage.books.expectBooksWhole();
});
afterAll(async () => {
  await stage.close();
});

const read = (operationId: string) =>
  readOperation(stage.books.ledger, { accountId: stage.accountId, operationId });

async function startSilent(operationId: string, input: object = {}) {
  await stage.provider.behave({ times: 1, do: { answer: 'late', until_released: true } });
  const handle = await stage.start(operationId, input);
  const key = await waitUntil('the provider has the request', async () => {
    const snapshot = await read(operationId);
    const prefix = `${snapshot?.operationKey ?? '?'}-`;
    return (await stage.provider.receivedUnder(prefix)) > 0 ? prefix : undefined;
  });
  return { handle, key };
}

describe('P4: one send, whatever operators do', () => {
  test('a workflow that is reset to its first task in mid-call sends nothing again', async () => {
    const { handle, key } = await startSilent('reset');
    const { runId } = await handle.describe();
    await stage.temporal.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: handle.workflowId, runId },
      reason: 'test',
      requestId: 'reset-1',
      workflowTaskFinishEventId: 4 as never,
    });
    await stage.provider.releaseAll();
    const again = stage.temporal.workflow.getHandle(handle.workflowId);
    await again.signal('lookUpNow', {});
    expect(await again.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(await stage.provider.receivedUnder(key)).toBe(1);
  });

  test('a workflow that is terminated in mid-call and started again finds its operation and asks', async () => {
    const { handle, key } = await startSilent('terminated');
    await handle.terminate('test');
    const held = (await read('terminated'))?.attempts[0]?.heldAmount;
    expect(held).toBe('40');
    const again = await stage.start('terminated');
    await stage.provider.releaseAll();
    expect(await again.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(await stage.provider.receivedUnder(key)).toBe(1);
  });

  test('a dispatch that is paused and unpaused in mid-call sends nothing again', async () => {
    const { handle, key } = await startSilent('paused');
    const { workflowService } = stage.temporal;
    const activity = {
      namespace: 'default',
      execution: { workflowId: handle.workflowId },
      type: 'dispatch',
      identity: 'test',
    };
    await workflowService.pauseActivity({ ...activity, reason: 'test' });
    await waitUntil('the activity is told', async () => {
      const { raw } = await handle.describe();
      return raw.pendingActivities?.some((pending) => pending.paused === true) === true
        ? true
        : undefined;
    });
    await workflowService.unpauseActivity({ ...activity, resetAttempts: true });
    await stage.provider.releaseAll();
    expect(await handle.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(await stage.provider.receivedUnder(key)).toBe(1);
  });

  test('a second supervisor under another workflow id joins the same operation and sends nothing', async () => {
    const { handle, key } = await startSilent('doubled');
    const second = await stage.temporal.workflow.start('llmCall', {
      taskQueue: 'holdfast',
      workflowId: `another-${stage.accountId}`,
      args: [
        {
          accountId: stage.accountId,
          operationId: 'doubled',
          route: 'fake-priced',
          maxTokens: 40,
          request: { messages: [{ role: 'user', content: 'Count to forty.' }] },
        },
      ],
    });
    await stage.provider.releaseAll();
    expect(await handle.result()).toMatchObject({ outcome: 'settled' });
    expect(await second.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(await stage.provider.receivedUnder(key)).toBe(1);
  });
});

describe('a provider where nothing can be looked up', () => {
  test('P2: a lost answer stays unknown, with its hold, until somebody brings evidence', async () => {
    await stage.provider.behave({
      match: { model: 'fake-direct' },
      times: 1,
      do: { drop: 'after_accepting' },
    });
    const handle = await stage.start('unasked', { route: 'plain' });
    await expect
      .poll(() => handle.query<string>('explain'), { timeout: 10_000 })
      .toContain('UNKNOWN');
    const { lookups } = (await stage.provider.truth()) as unknown as { lookups: { key: string }[] };
    const snapshot = await read('unasked');
    const [attempt] = snapshot?.attempts ?? [];
    expect(lookups.filter((lookup) => lookup.key === attempt?.attemptKey)).toEqual([]);
    expect(await readBudget(stage.books.ledger, 'team-a')).toMatchObject({ unknown_amount: 40n });
    await recordChargeReport(stage.books.ledger, {
      provider: 'plain',
      attemptKey: attempt?.attemptKey ?? '',
      report: {
        basis: 'final',
        usage: { request: 1, input_tokens: 3, output_tokens: 40 },
        evidence: { source: 'invoice', reference: 'invoice-7' },
      },
    });
    await handle.signal('lookUpNow', {});
    expect(await handle.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
  });

  test('an answer with its usage is priced by the price book', async () => {
    const result = await (await stage.start('priced', { route: 'plain', maxTokens: 7 })).result();
    expect(result).toMatchObject({ outcome: 'settled', chargedAmount: '7' });
    const snapshot = await read('priced');
    expect(snapshot?.attempts[0]?.pricedBy).toBe('price_book');
  });
});

describe('P2: a supervisor that lives long', () => {
  test('a configuration that has changed does not part a supervisor from its open hold', async () => {
    const { handle, key } = await startSilent('reconfigured');
    await handle.terminate('test');
    const before = stage.routes.get('fake-priced');
    if (before?.kind !== 'call') throw new Error('no route');
    stage.routes.set('fake-priced', { ...before, maxTokensMax: 2 });
    const limited = await stage.start('reconfigured');
    await expect.poll(() => limited.query<string>('explain')).toContain('Attempt 1');
    await limited.terminate('test');
    stage.routes.delete('fake-priced');
    const again = await stage.start('reconfigured');
    await stage.provider.releaseAll();
    expect(await again.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(await stage.provider.receivedUnder(key)).toBe(1);
    await expect((await stage.start('brand-new')).result()).rejects.toThrow();
    stage.routes.set('fake-priced', before);
  });

  test('a caller who waits for the answer does not end the asking when the history grows too long', async () => {
    await stage.provider.behave({
      times: 1,
      do: { drop: 'after_accepting', lookup: { finds: 'after_release' } },
    });
    const handle = await stage.start('long-lived');
    const { runId } = await handle.describe();
    await expect
      .poll(() => handle.query<string>('explain'), { timeout: 10_000 })
      .toContain('UNKNOWN');
    const waiting = await handle.startUpdate<{ status: string }, []>('awaitAnswer', {
      waitForStage: 'ACCEPTED',
    });
    for (let round = 0; round < 44; round += 1) {
      await Promise.all(
        Array.from({ length: 100 }, () =>
          stage.temporal.workflow.getHandle(handle.workflowId).signal('lookUpNow', {}),
        ),
      );
    }
    await waitUntil(
      'it continues as new',
      async () => {
        const description = await stage.temporal.workflow.getHandle(handle.workflowId).describe();
        return description.runId === runId ? undefined : true;
      },
      40_000,
    );
    expect((await waiting.result()).status).toBe('unknown');
    await stage.provider.releaseAll();
    const newest = stage.temporal.workflow.getHandle(handle.workflowId);
    await newest.signal('lookUpNow', {});
    expect(await newest.result()).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
  }, 90_000);
});
