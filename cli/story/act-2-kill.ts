// Act 2, kill -9: the worker dies after the request was sent and before the answer was recorded. A
// new worker finds the operation, asks the provider by key, and settles.

import { readOperation } from '../../ledger/read.js';
import { waitUntil } from '../../scenario-runner/wait-until.js';
import {
  balanceOf,
  MAX_TOKENS,
  openAccount,
  PATIENT_ROUTE,
  request,
  type StoryProps,
} from './props.js';

export async function playKill(props: StoryProps): Promise<void> {
  const { stage, sheet, say } = props;
  say('Act 2, kill -9. A worker dies in mid-call.');
  const accountId = await openAccount(props, 'kill');
  const operationId = 'doomed';
  await stage.provider.forgetRules();
  await stage.provider.behave({
    match: { model: PATIENT_ROUTE },
    times: 1,
    do: { answer: 'late', delay_ms: 1_500 },
  });
  const call = stage.holdfast.call({
    accountId,
    operationId,
    route: PATIENT_ROUTE,
    maxTokens: MAX_TOKENS,
    request,
  });
  await call.admit();
  const key = await waitUntil('the provider has the request', async () => {
    const snapshot = await readOperation(stage.ledger, { accountId, operationId });
    const attemptKey = snapshot?.attempts[0]?.attemptKey ?? '-';
    return (await stage.provider.receivedUnder(attemptKey)) > 0 ? attemptKey : undefined;
  });
  const before = await readOperation(stage.ledger, { accountId, operationId });
  await stage.killWorkers();
  say(`  the provider has the request, nothing of its answer is recorded; the worker is killed`);
  sheet.add(2, {
    figure: 'phase when killed',
    expected: 'sending',
    actual: before?.attempts[0]?.phase ?? 'unknown',
    source: 'ledger.read_operation',
  });
  const worker = await stage.startWorker();
  say(`  a new worker has started, pid ${worker.pid}`);
  const result = await call.result();
  const balance = await balanceOf(props, accountId);
  for (const [figure, expected, actual, source] of [
    [
      'requests at the provider',
      '1',
      String(await stage.provider.receivedUnder(key)),
      'GET /truth',
    ],
    ['outcome', 'settled', result.outcome, 'result()'],
    [
      'charged',
      String(props.worstCase),
      String(await stage.provider.chargedUnder(key)),
      'GET /truth',
    ],
    ['captured', String(props.worstCase), String(balance.captured_amount), 'ledger.budget_view'],
    ['held', '0', String(balance.held_amount), 'ledger.budget_view'],
  ] as const) {
    sheet.add(2, { figure, expected, actual, source });
  }
}
