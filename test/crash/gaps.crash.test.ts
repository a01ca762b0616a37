import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { checkBooks, readBudget } from '../../ledger/read.js';
import { waitUntil } from '../../scenario-runner/play/wait-until.js';
import { type CrashStage, openCrashStage, WORST_CASE } from '../support/crash-stage.js';

let crash: CrashStage;

beforeAll(async () => {
  crash = await openCrashStage('gaps');
  await crash.stage.startWorker();
});
afterEach(async () => {
  crash.stage.ledgerGate.pass();
  crash.stage.temporalGate.pass();
  if (crash.stage.workerPids().length === 0) await crash.stage.startWorker();
  await crash.stage.provider.releaseAll();
  await crash.stage.provider.forgetRules();
});
afterAll(async () => {
  await crash.close();
});

const LOCK_BUDGET = "select 1 from ledger.budget where budget_id = 'team-a' for update";
const LOCK_FENCE =
  "select 1 from ledger.legal_transition where from_state = 'held' and to_state = 'dispatched' for update";
const LOCK_SETTLE =
  "select 1 from ledger.legal_transition where from_state = 'dispatched' and to_state = 'settled' for update";

const requestReachesProvider = (operationId: string): Promise<true> =>
  waitUntil('the provider has the request', async () =>
    (await crash.receivedFor(operationId)) > 0 ? true : undefined,
  );

describe('a worker killed by kill -9', () => {
  test('before the admission commits: the next worker admits and sends once', async () => {
    const lock = await crash.lock(LOCK_BUDGET);
    const admitting = crash.call('before-commit').admit({ timeoutMs: 30_000 });
    const backend = await crash.workerStandsIn('place_hold');
    await crash.stage.killWorkers();
    await crash.terminateBackend(backend);
    await lock.release();
    expect(await crash.operation('before-commit')).toBeUndefined();
    await crash.stage.startWorker();
    expect((await admitting).status).toBe('admitted');
    await crash.expectSettledOnce('before-commit');
  });

  test('after the admission committed and before anybody heard: the hold is found, and sent once', async () => {
    crash.stage.ledgerGate.hold('to_client');
    const admitting = crash.call('after-commit').admit({ timeoutMs: 30_000 });
    await waitUntil('the hold is committed', async () =>
      (await crash.attempt('after-commit'))?.phase === 'not_sent' ? true : undefined,
    );
    await crash.stage.killWorkers();
    crash.stage.ledgerGate.pass();
    await crash.stage.startWorker();
    expect((await admitting).status).toBe('admitted');
    await crash.expectSettledOnce('after-commit');
  });

  test('in the fence before it commits: the fence is free again, and one send follows', async () => {
    const lock = await crash.lock(LOCK_FENCE);
    await crash.call('in-fence').admit();
    const backend = await crash.workerStandsIn('take_fence');
    await crash.stage.killWorkers();
    await crash.terminateBackend(backend);
    await lock.release();
    expect((await crash.attempt('in-fence'))?.phase).toBe('not_sent');
    await crash.stage.startWorker();
    await crash.expectSettledOnce('in-fence');
  });

  test('P2: after the fence and before a byte left: nothing is sent, and the hold stays unknown', async () => {
    const lock = await crash.lock(LOCK_FENCE);
    await crash.call('after-fence').admit();
    await crash.workerStandsIn('take_fence');
    await crash.stage.killWorkers();
    await lock.release();
    await waitUntil('the fence of the dead sender commits', async () =>
      (await crash.attempt('after-fence'))?.phase === 'sending' ? true : undefined,
    );
    await crash.stage.startWorker();
    await waitUntil('the dead sender is unknown', async () =>
      (await crash.attempt('after-fence'))?.reasons.some(
        (entry) => entry.reason === 'not_found',
      ) === true
        ? true
        : undefined,
    );
    expect(await crash.receivedFor('after-fence')).toBe(0);
    expect((await crash.attempt('after-fence'))?.heldAmount).toBe(String(WORST_CASE));
    expect(await checkBooks(crash.stage.ledger)).toEqual([]);
    const handle = crash.stage.temporal.workflow.getHandle(crash.call('after-fence').workflowId);
    await handle.terminate('the test is over: nobody will ever answer this one');
  });

  test('P4: after the bytes left: one request, settled by asking under its key', async () => {
    const heldBefore = (await readBudget(crash.stage.ledger, 'team-a'))?.held_amount ?? 0n;
    await crash.stage.provider.behave({ times: 1, do: { answer: 'late', until_released: true } });
    await crash.call('bytes-left').admit();
    await requestReachesProvider('bytes-left');
    expect((await crash.attempt('bytes-left'))?.phase).toBe('sending');
    await crash.stage.killWorkers();
    await crash.stage.provider.releaseAll();
    await crash.stage.startWorker();
    expect(await crash.settled('bytes-left')).toMatchObject({
      outcome: 'settled',
      chargedAmount: '40',
    });
    expect(await crash.receivedFor('bytes-left')).toBe(1);
    expect((await readBudget(crash.stage.ledger, 'team-a'))?.held_amount).toBe(heldBefore);
  });

  test('after the answer and before it is recorded: one request, settled by asking', async () => {
    const lock = await crash.lock(LOCK_SETTLE);
    await crash.call('unrecorded').admit();
    const backend = await crash.workerStandsIn('record_observation');
    expect(await crash.receivedFor('unrecorded')).toBe(1);
    await crash.stage.killWorkers();
    await crash.terminateBackend(backend);
    await lock.release();
    expect((await crash.attempt('unrecorded'))?.phase).toBe('sending');
    await crash.stage.startWorker();
    expect(await crash.settled('unrecorded')).toMatchObject({
      outcome: 'settled',
      chargedAmount: '40',
    });
    expect(await crash.receivedFor('unrecorded')).toBe(1);
  });

  test('after it is recorded and before Temporal hears of it: the record stands, and nothing is booked twice', async () => {
    await crash.stage.provider.behave({ times: 1, do: { answer: 'late', until_released: true } });
    await crash.call('recorded').admit();
    await requestReachesProvider('recorded');
    crash.stage.ledgerGate.hold('to_client');
    await crash.stage.provider.releaseAll();
    await waitUntil('the charge is booked', async () =>
      (await crash.operation('recorded'))?.state === 'settled' ? true : undefined,
    );
    await crash.stage.killWorkers();
    crash.stage.ledgerGate.pass();
    await crash.stage.startWorker();
    const result = await crash.settled('recorded');
    expect(result).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(result.answerRef).toMatch(/^sha256:/);
    expect(await crash.receivedFor('recorded')).toBe(1);
    expect(await checkBooks(crash.stage.ledger)).toEqual([]);
  });
});

describe('a worker that is frozen or asked to stop', () => {
  test('a sender frozen until its time has passed sends nothing under that key, gives up, and a new attempt is sent once', async () => {
    const lock = await crash.lock(LOCK_FENCE);
    await crash.call('frozen').admit();
    await crash.workerStandsIn('take_fence');
    const [pid] = crash.stage.workerPids();
    process.kill(pid ?? 0, 'SIGSTOP');
    await lock.release();
    await waitUntil('the time to send has passed', async () => {
      const { rows } = await crash.query(
        "select 1 from ledger.attempt where phase = 'sending' and send_until < clock_timestamp()",
      );
      return rows.length > 0 ? true : undefined;
    });
    process.kill(pid ?? 0, 'SIGCONT');
    const result = await crash.settled('frozen');
    expect(result).toMatchObject({ outcome: 'settled', attemptCount: 2 });
    expect(await crash.receivedFor('frozen')).toBe(1);
    const snapshot = await crash.operation('frozen');
    expect(snapshot?.attempts.map((attempt) => attempt.phase)).toEqual(['withdrawn', 'charged']);
  });

  test('SIGTERM in mid-call neither cancels nor releases: the call is finished and booked', async () => {
    await crash.stage.provider.behave({ times: 1, do: { answer: 'late', delay_ms: 1_200 } });
    await crash.call('terminated').admit();
    await requestReachesProvider('terminated');
    const [pid] = crash.stage.workerPids();
    process.kill(pid ?? 0, 'SIGTERM');
    await waitUntil('the call is booked', async () =>
      (await crash.operation('terminated'))?.state === 'settled' ? true : undefined,
    );
    await crash.stage.killWorkers();
    await crash.stage.startWorker();
    const result = await crash.settled('terminated');
    expect(result).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(result.answerRef).toMatch(/^sha256:/);
    expect(await crash.receivedFor('terminated')).toBe(1);
  });
});

describe('a worker that may not wait for the answer', () => {
  test('P2: SIGTERM with an answer that does not come keeps the hold as unknown, and the next worker asks', async () => {
    await crash.stage.provider.behave({
      times: 1,
      do: { answer: 'late', until_released: true, lookup: { finds: 'after_release' } },
    });
    await crash.call('unheard').admit();
    await requestReachesProvider('unheard');
    const [pid] = crash.stage.workerPids();
    process.kill(pid ?? 0, 'SIGTERM');
    await waitUntil('what was on its way is unknown', async () =>
      (await crash.attempt('unheard'))?.phase === 'unknown' ? true : undefined,
    );
    expect((await crash.attempt('unheard'))?.heldAmount).toBe(String(WORST_CASE));
    expect((await crash.operation('unheard'))?.cancel).toBe('none');
    await crash.stage.killWorkers();
    await crash.stage.provider.releaseAll();
    await crash.stage.startWorker();
    expect(await crash.settled('unheard')).toMatchObject({
      outcome: 'settled',
      chargedAmount: '40',
    });
    expect(await crash.receivedFor('unheard')).toBe(1);
  });
});

describe('a way that is cut', () => {
  test('the way to Postgres cut while an answer is in flight: it is recorded when the way comes back', async () => {
    await crash.stage.provider.behave({ times: 1, do: { answer: 'late', delay_ms: 800 } });
    await crash.call('cut-answer').admit();
    await requestReachesProvider('cut-answer');
    crash.stage.ledgerGate.cut();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect((await crash.attempt('cut-answer'))?.phase).toBe('sending');
    crash.stage.ledgerGate.pass();
    const result = await crash.settled('cut-answer');
    expect(result).toMatchObject({ outcome: 'settled', chargedAmount: '40' });
    expect(result.answerRef).toMatch(/^sha256:/);
    expect(await crash.receivedFor('cut-answer')).toBe(1);
  });

  test('the way to Postgres cut at the admission: the call hears it, and nothing of it is ever sent', async () => {
    const before = (await crash.stage.provider.truth()).totals.received;
    crash.stage.ledgerGate.cut();
    const verdict = await crash.call('dark').admit({ timeoutMs: 20_000 });
    expect(verdict).toEqual({ status: 'unavailable', reason: 'ledger_unavailable' });
    crash.stage.ledgerGate.pass();
    expect(await crash.settled('dark')).toMatchObject({ outcome: 'unavailable' });
    expect((await crash.stage.provider.truth()).totals.received).toBe(before);
    const again = crash.call('dark');
    expect((await again.admit()).status).toBe('admitted');
    expect(await crash.settled('dark')).toMatchObject({ outcome: 'settled' });
    expect((await crash.stage.provider.truth()).totals.received).toBe(before + 1);
  });

  test('the way to Temporal cut in mid-call and back: nothing is lost and nothing is sent twice', async () => {
    await crash.stage.provider.behave({ times: 1, do: { answer: 'late', delay_ms: 500 } });
    await crash.call('cut-temporal').admit();
    await requestReachesProvider('cut-temporal');
    crash.stage.temporalGate.cut();
    await waitUntil('the answer is booked meanwhile', async () =>
      (await crash.operation('cut-temporal'))?.state === 'settled' ? true : undefined,
    );
    crash.stage.temporalGate.pass();
    expect(await crash.settled('cut-temporal')).toMatchObject({ outcome: 'settled' });
    expect(await crash.receivedFor('cut-temporal')).toBe(1);
    expect(await checkBooks(crash.stage.ledger)).toEqual([]);
  });
});
