// The control arm: the same steps against the same provider, with the naive driver in the place of
// the product. What only the product has (workers, workflows, a ledger) is stepped over.

import type { Scenario } from '../language/scenario.js';
import type { CallStep, Step, StepOf, StepWord } from '../language/steps.js';
import type { Check } from '../play/check.js';
import { toAmount, toCount } from '../play/numbers.js';
import { chargedBy, type ProviderControl } from '../play/provider-control.js';
import { pricesGiven, routesGiven, smallestLimit } from '../play/settings.js';
import { waitUntil } from '../play/wait-until.js';
import { createNaiveDriver, type NaiveDriver } from './naive-driver.js';

/** How long its callers wait where the scenario says nothing. */
const PATIENCE_MS = 1_000;

export interface NaivePlayed {
  readonly checks: readonly Check[];
  readonly admittedCount: number;
}

interface NaivePlay {
  readonly scenario: Scenario;
  readonly provider: ProviderControl;
  readonly tell: (line: string) => void;
}

export async function playNaive(play: NaivePlay): Promise<NaivePlayed> {
  const { scenario, provider, tell } = play;
  const limit = smallestLimit(scenario);
  const driver = createNaiveDriver({
    providerUrl: provider.url,
    limit: limit ?? 2n ** 62n,
    prices: new Map(
      pricesGiven(scenario).map(([route, price]) => [
        route,
        toAmount(price.per_output_token ?? 0, price.unit, scenario.numbers),
      ]),
    ),
    fallbacks: new Map(
      Object.entries(routesGiven([scenario])).map(([route, given]) => [
        route,
        given.fallback ?? [],
      ]),
    ),
  });
  const fromSeq = await provider.newestSeq();
  await provider.forgetRules();
  for (const rule of scenario.given.provider) await provider.behave(rule);
  const running: Promise<void>[] = [];
  const admitted: string[] = [];
  for (const step of scenario.steps) await playStep({ play, driver, running, admitted }, step);
  await provider.releaseAll();
  await Promise.all(running);
  const requests = await provider.requestsAfter(fromSeq);
  const charged = chargedBy(requests);
  tell(`naive: the provider received ${requests.length} and charged ${charged}`);
  return {
    checks: [...admittedCheck(scenario, admitted.length), ...judge(scenario, { charged, limit })],
    admittedCount: admitted.length,
  };
}

function admittedCheck({ naive }: Scenario, count: number): Check[] {
  if (naive?.admitted === undefined) return [];
  const expected = String(naive.admitted);
  const actual = String(count);
  const ok = expected === actual;
  return [{ name: 'naive admitted', expected, actual, ok, source: 'the naive driver', line: 1 }];
}

function judge(
  scenario: Scenario,
  { charged, limit }: { readonly charged: bigint; readonly limit: bigint | undefined },
): Check[] {
  const expected = toAmount(scenario.naive?.charged ?? 0, 'credit', scenario.numbers);
  const source = 'GET /truth';
  const figure: Check = {
    name: 'naive charged',
    expected: String(expected),
    actual: String(charged),
    // Timing decides how bad it gets: at the figure of the record, or worse.
    ok: charged >= expected,
    source,
    line: 1,
  };
  if (limit === undefined) return [figure];
  const cap: Check = {
    name: 'cap',
    expected: `<= ${limit}`,
    actual: String(charged),
    ok: charged <= limit,
    source,
    line: 1,
  };
  return [figure, cap];
}

interface Naive {
  readonly play: NaivePlay;
  readonly driver: NaiveDriver;
  readonly running: Promise<void>[];
  readonly admitted: string[];
}

type Handler<Word extends StepWord> = (naive: Naive, step: StepOf<Word>) => Promise<unknown>;

/** Words that are not here are of parts that it does not have. */
const HANDLERS: { readonly [Word in StepWord]?: Handler<Word> } = {
  call: begin,
  together: (naive, step) => Promise.all(step.together.map((call) => begin(naive, call))),
  provider: ({ play }, step) => play.provider.behave(step.provider),
  provider_forgets: ({ play }) => play.provider.forgetRules(),
  // Its callers gave up or have their answer; keys are its own, so all is let go.
  release: ({ play }) => play.provider.releaseAll(),
  forward: async ({ play }, step) => {
    if (step.clock !== 'ledger') await play.provider.order('clock', { advanceMs: step.forward });
  },
};

async function playStep(naive: Naive, { word, step }: Step): Promise<void> {
  const handler = HANDLERS[word] as Handler<StepWord> | undefined;
  await handler?.(naive, step);
}

/** Goes on when the provider has the request, as the product's caller does when it is admitted. */
async function begin({ play, driver, running, admitted }: Naive, step: CallStep): Promise<void> {
  const maxTokens = toCount(step.max_tokens, play.scenario.numbers);
  let isDone = false;
  const work = driver
    .call({
      name: step.call,
      route: step.route,
      maxTokens,
      timeoutMs: step.caller_waits ?? PATIENCE_MS,
    })
    .then(({ verdict, answered, attemptCount }) => {
      isDone = true;
      if (verdict === 'admitted') admitted.push(step.call);
      play.tell(
        `naive: "${step.call}" is ${verdict}, ${answered ? 'answered' : 'not answered'}, ${attemptCount} sent`,
      );
    });
  running.push(work);
  if (step.caller_waits !== undefined) return work;
  await waitUntil(`the provider has "${step.call}"`, async () =>
    isDone || (await play.provider.receivedUnder(`naive-${step.call}-`)) > 0 ? true : undefined,
  );
}
