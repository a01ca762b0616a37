// Act 3, lights out: the way to Postgres is cut. A new call hears so and nothing of it is ever sent;
// the earlier hold is still there when the way comes back, and the next call is admitted at once.

import type { CallHandle } from '../../client/holdfast-client.js';
import { readOperation } from '../../ledger/read.js';
import { waitUntil } from '../../scenario-runner/wait-until.js';
import {
  balanceOf,
  MAX_TOKENS,
  openAccount,
  request,
  STORY_ROUTE,
  type StoryProps,
} from './props.js';

const HEARD_WITHIN_MS = 6_000;
const ADMITTED_WITHIN_MS = 3_000;
/** A stated time fails a run only above three times it: machines are shared. */
const TOLERANCE = 3;

export async function playLightsOut(props: StoryProps): Promise<void> {
  const { stage, sheet, say } = props;
  say('Act 3, lights out. The way to Postgres is cut.');
  const accountId = await openAccount(props, 'lights');
  const call = (operationId: string) =>
    stage.holdfast.call({
      accountId,
      operationId,
      route: STORY_ROUTE,
      maxTokens: MAX_TOKENS,
      request,
    });
  await stage.provider.forgetRules();
  await stage.provider.behave({
    match: { model: STORY_ROUTE },
    times: 1,
    do: { answer: 'late', until_released: true, lookup: { finds: 'after_release' } },
  });
  const earlier = call('earlier');
  await earlier.admit();
  await waitUntil('the earlier call becomes unknown', async () =>
    (await balanceOf(props, accountId)).unknown_amount > 0n ? true : undefined,
  );

  const receivedBefore = (await stage.provider.truth()).totals.received;
  stage.ledgerGate.cut();
  const dark = call('dark');
  await askInTheDark(props, dark);
  stage.ledgerGate.pass();
  await askInTheLight(props, call('next'), accountId);

  await call('next').result();
  await dark.result();
  const darkAfter = await readOperation(stage.ledger, { accountId, operationId: 'dark' });
  const received = (await stage.provider.truth()).totals.received - receivedBefore;
  sheet.add(3, {
    figure: 'requests since the cut, all of the next call',
    expected: '1',
    actual: String(received),
    source: 'GET /truth',
  });
  sheet.add(3, {
    figure: 'holds of the call in the dark',
    expected: '0',
    actual: darkAfter === undefined ? '0' : (darkAfter.attempts[0]?.heldAmount ?? 'unknown'),
    source: 'ledger.read_operation',
  });
  await stage.provider.releaseAll();
  await earlier.lookUpNow('the story is over');
  await earlier.result();
  const balance = await balanceOf(props, accountId);
  sheet.add(3, {
    figure: 'held at the end',
    expected: '0',
    actual: String(balance.held_amount),
    source: 'ledger.budget_view',
  });
}

async function askInTheDark({ sheet, say }: StoryProps, dark: CallHandle): Promise<void> {
  const askedAt = performance.now();
  const verdict = await dark.admit({ timeoutMs: HEARD_WITHIN_MS * TOLERANCE });
  const heardMs = Math.round(performance.now() - askedAt);
  const heard = verdict.status === 'unavailable' ? verdict.reason : verdict.status;
  say(`  the new call hears ${heard} after ${heardMs} ms`);
  sheet.add(3, {
    figure: 'new call hears',
    expected: 'ledger_unavailable',
    actual: heard,
    source: 'admit',
  });
  sheet.add(3, within('heard within ms', HEARD_WITHIN_MS, heardMs));
}

async function askInTheLight(
  { stage, sheet, say, worstCase }: StoryProps,
  next: CallHandle,
  accountId: string,
): Promise<void> {
  const backAt = performance.now();
  const verdict = await next.admit({ timeoutMs: ADMITTED_WITHIN_MS * TOLERANCE });
  const admittedMs = Math.round(performance.now() - backAt);
  say(`  the way is back; the next call is ${verdict.status} after ${admittedMs} ms`);
  sheet.add(3, {
    figure: 'next admission',
    expected: 'admitted',
    actual: verdict.status,
    source: 'admit',
  });
  sheet.add(3, within('admitted within ms', ADMITTED_WITHIN_MS, admittedMs));
  const early = await readOperation(stage.ledger, { accountId, operationId: 'earlier' });
  sheet.add(3, {
    figure: 'earlier hold still there',
    expected: String(worstCase),
    actual: early?.attempts[0]?.heldAmount ?? 'unknown',
    source: 'ledger.read_operation',
  });
}

function within(figure: string, limitMs: number, actualMs: number) {
  return {
    figure,
    expected: `<= ${limitMs}`,
    actual: String(actualMs),
    source: 'clock of the caller',
    ok: actualMs <= limitMs * TOLERANCE,
  };
}
