// Act 1, forty credits: the same events for a naive driver and for Holdfast. The provider accepts
// the first call and does not answer in time; two others ask at once.

import { recordChargeReport } from '../../ledger/record.js';
import { readOperation, readTimeline } from '../../ledger/read.js';
import { createNaiveDriver } from '../../scenario-runner/naive/naive-driver.js';
import { waitUntil } from '../../scenario-runner/wait-until.js';
import type { AdmitAnswer } from '../../client/holdfast-client.js';
import type { Refusal } from '../../domain/refusal.js';
import {
  balanceOf,
  MAX_TOKENS,
  openAccount,
  request,
  STORY_ROUTE,
  type StoryProps,
} from './props.js';

const TRUTH = 'GET /truth';
const CALLER_TIMEOUT_MS = 700;

export async function playForty(props: StoryProps): Promise<void> {
  props.say(
    `Act 1, forty credits. Limit ${props.limit}, three calls of at most ${props.worstCase}.`,
  );
  const naive = await playNaive(props);
  const holdfast = await playHoldfast(props);
  props.say('');
  props.say('              admitted   charged   over the limit');
  for (const [name, row] of [
    ['naive   ', naive],
    ['holdfast', holdfast],
  ] as const) {
    const over = row.charged > props.limit ? row.charged - props.limit : 0n;
    props.say(
      `  ${name}    ${String(row.admitted).padStart(8)}${String(row.charged).padStart(10)}${String(over).padStart(17)}`,
    );
  }
  props.say('');
}

/** The first call is accepted and not answered until released; nothing finds it meanwhile. */
async function silenceTheFirst(props: StoryProps): Promise<void> {
  const match = { model: STORY_ROUTE };
  await props.stage.provider.forgetRules();
  const lookup = { finds: 'after_release' };
  await props.stage.provider.behave({
    match,
    times: 1,
    do: { answer: 'late', until_released: true, lookup },
  });
  await props.stage.provider.behave({ match, times: 2, do: { answer: 'late', delay_ms: 600 } });
}

interface Row {
  readonly admitted: number;
  readonly charged: bigint;
}

async function playNaive(props: StoryProps): Promise<Row> {
  const { stage, sheet, say } = props;
  const keyPrefix = `naive-${props.suffix}-`;
  const driver = createNaiveDriver({
    providerUrl: stage.provider.url,
    model: STORY_ROUTE,
    limit: props.limit,
    worstCase: props.worstCase,
    maxTokens: MAX_TOKENS,
    keyPrefix,
  });
  await silenceTheFirst(props);
  say(
    `  naive: the first call ${await driver.call('a', CALLER_TIMEOUT_MS)}; its reservation is given back`,
  );
  const others = await Promise.all([driver.call('b', 5_000), driver.call('c', 5_000)]);
  say(`  naive: the other two ${others.join(' and ')}`);
  await stage.provider.releaseAll();
  const charged = await stage.provider.chargedUnder(keyPrefix);
  sheet.add(1, {
    figure: 'naive admitted',
    expected: '3',
    actual: String(driver.admittedCount()),
    source: 'naive driver',
  });
  sheet.add(1, {
    figure: 'naive charged',
    expected: String(props.worstCase * 3n),
    actual: String(charged),
    source: TRUTH,
  });
  return { admitted: driver.admittedCount(), charged };
}

async function playHoldfast(props: StoryProps): Promise<Row> {
  const { stage, sheet, say } = props;
  const accountId = await openAccount(props, 'forty');
  const call = (operationId: string) =>
    stage.holdfast.call({
      accountId,
      operationId,
      route: STORY_ROUTE,
      maxTokens: MAX_TOKENS,
      request,
    });
  await silenceTheFirst(props);

  const first = call('a');
  const verdicts: AdmitAnswer[] = [await first.admit()];
  const heard = await first.awaitAnswer(CALLER_TIMEOUT_MS);
  say(`  holdfast: the first call is ${heard.status} to its caller; its hold is kept`);
  await waitUntil('the first call becomes unknown', async () =>
    (await balanceOf(props, accountId)).unknown_amount === props.worstCase ? true : undefined,
  );
  const second = call('b');
  const third = call('c');
  verdicts.push(...(await Promise.all([second.admit(), third.admit()])));
  const admitted = verdicts.filter((verdict) => verdict.status === 'admitted').length;
  sheet.add(1, {
    figure: 'holdfast admitted',
    expected: '2',
    actual: String(admitted),
    source: 'admit',
  });
  const refusal = verdicts.find((verdict) => verdict.status === 'refused')?.refusal;
  tellRefusal(props, refusal);

  await stage.provider.releaseAll();
  await first.lookUpNow('the provider answers again');
  await Promise.all([first.result(), second.result(), third.result()]);
  await bookTwice(props, accountId);
  await tellBooks(props, accountId);
  return { admitted, charged: await chargedFor(props, accountId) };
}

function tellRefusal({ sheet, limit, worstCase }: StoryProps, refusal: Refusal | undefined): void {
  const source = 'refusal of the ledger';
  const held = worstCase * 2n;
  for (const [figure, expected, actual] of [
    ['refused needs', worstCase, refusal?.neededAmount],
    ['refused available', limit - held, refusal?.availableAmount],
    ['refused held', held, refusal?.heldAmount],
    ['refused unknown', worstCase, refusal?.unknownAmount],
  ] as const) {
    sheet.add(1, { figure, expected: String(expected), actual: actual ?? 'unknown', source });
  }
}

/** The provider's report of the first call arrives again, twice, and changes nothing. */
async function bookTwice(props: StoryProps, accountId: string): Promise<void> {
  const { stage, sheet } = props;
  const snapshot = await readOperation(stage.ledger, { accountId, operationId: 'a' });
  const attempt = snapshot?.attempts[0];
  if (snapshot === undefined || attempt?.chargedAmount == null) return;
  for (const reference of ['webhook-1', 'webhook-1']) {
    await recordChargeReport(stage.ledger, {
      provider: attempt.provider,
      attemptKey: attempt.attemptKey,
      report: {
        basis: 'final',
        amount: attempt.chargedAmount,
        evidence: { source: 'webhook', reference },
      },
    });
  }
  const events = await readTimeline(stage.ledger, snapshot.operationKey);
  sheet.add(1, {
    figure: 'duplicate reports told apart',
    expected: '2',
    actual: String(
      events.filter((event) => event.kind === 'duplicate' && event.evidence_source === 'webhook')
        .length,
    ),
    source: 'ledger.event_view',
  });
}

async function tellBooks(props: StoryProps, accountId: string): Promise<void> {
  const { sheet, worstCase, limit } = props;
  const balance = await balanceOf(props, accountId);
  const charged = worstCase * 2n;
  for (const [figure, expected, actual, source] of [
    ['holdfast charged', charged, await chargedFor(props, accountId), TRUTH],
    ['holdfast captured', charged, balance.captured_amount, 'ledger.budget_view'],
    ['holdfast held', 0n, balance.held_amount, 'ledger.budget_view'],
    ['holdfast available', limit - charged, balance.available_amount, 'ledger.budget_view'],
  ] as const) {
    sheet.add(1, { figure, expected: String(expected), actual: String(actual), source });
  }
}

async function chargedFor(props: StoryProps, accountId: string): Promise<bigint> {
  let charged = 0n;
  for (const operationId of ['a', 'b', 'c']) {
    const snapshot = await readOperation(props.stage.ledger, { accountId, operationId });
    if (snapshot !== undefined) {
      charged += await props.stage.provider.chargedUnder(`${snapshot.operationKey}-`);
    }
  }
  return charged;
}
