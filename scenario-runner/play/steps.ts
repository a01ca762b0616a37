// Steps
// -----
// What each word of the language does to the real parts. A step waits for a state, never for a time.

import type { Gate } from '../../devstack/gate.js';
import { setBudgetFrozen } from '../../ledger/administer.js';
import { recordChargeReport } from '../../ledger/record.js';
import type { Step, StepOf, StepWord } from '../language/steps.js';
import { playAsking, playTogether, restart } from './calls.js';
import { cancel, deleteWorkflow, reset, signal, sweepNow } from './operator-steps.js';
import { playTask } from './tasks.js';
import { PlayError } from './check.js';
import { compare } from '../figures/compare.js';
import { toPositive, toAmount } from './numbers.js';
import { callOf, check, operationOf, type Play, workflowIdOf } from './play.js';
import { forwardLedgerClock } from './raw-ledger.js';
import { priceRoute } from './settings.js';
import { lookUp, waitFor } from './waits.js';

/** What it returns is awaited, and ignored. */
type Handler<Word extends StepWord> = (play: Play, step: StepOf<Word>, line: number) => unknown;

const HANDLERS: { readonly [Word in StepWord]: Handler<Word> } = {
  call: playAsking,
  job: playAsking,
  task: playTask,
  together: playTogether,
  wait_for: waitFor,
  answer: awaitAnswer,
  expect: (play, step, line) => compare(play, step.expect, line),
  look_up: (play, step) => lookUp(play, step.look_up),
  restart: (play, step) => restart(play, step.restart),
  report,
  forward,
  price: (play, step) =>
    priceRoute(play.stage.ledger, {
      route: step.price,
      price: { unit: 'credit', per_output_token: step.per_output_token },
      numbers: play.scenario.numbers,
    }),
  provider: (play, step) => play.stage.provider.behave(step.provider),
  provider_forgets: (play) => play.stage.provider.forgetRules(),
  release: async (play, step) =>
    step.release === 'all'
      ? play.stage.provider.releaseAll()
      : play.stage.provider.order('release', { key: await keyOf(play, step.release) }),
  finish: async (play, step) =>
    play.stage.provider.order('finish', {
      key: await keyOf(play, step.finish),
      ...(step.completion_tokens !== undefined && {
        usage: { completion_tokens: step.completion_tokens },
      }),
      ...(step.charge !== undefined && { charge: credits(play, step.charge) }),
    }),
  correct: async (play, step) =>
    play.stage.provider.order('correct', {
      key: await keyOf(play, step.correct),
      charge: credits(play, step.charge),
    }),
  lookup: async (play, step) =>
    play.stage.provider.order('lookup', {
      key: await keyOf(play, step.lookup),
      lookup: step.answers,
      ...(step.charge_answers !== undefined && { charge_lookup: step.charge_answers }),
    }),
  cancelling: async (play, step) =>
    play.stage.provider.order('cancel', {
      key: await keyOf(play, step.cancelling),
      cancel: step.answers,
    }),
  ticks: (play, step) => play.stage.provider.order('ticks', { count: step.ticks }),
  outage: (play, step) => play.stage.provider.order('outage', { jobs: step.outage === 'begins' }),
  kill: (play, step) => {
    play.tell(`${step.signal} to ${play.stage.workerPids().join(', ')}`);
    return play.stage.killWorkers(step.signal);
  },
  start: (play, step) => start(play, step.start),
  stop: async (play, step) => {
    await ownServers(play).stop(step.stop);
    if (step.stop === 'postgres') play.ledgerIsAway = true;
  },
  cut: (play, step) => {
    gateOf(play, step.cut).cut();
  },
  hold: (play, step) => {
    gateOf(play, step.hold).hold(step.direction);
  },
  pass: (play, step) => {
    gateOf(play, step.pass).pass();
  },
  terminate: (play, step) =>
    play.stage.temporal.workflow
      .getHandle(workflowIdOf(play, step.terminate))
      .terminate('the scenario says so'),
  cancel,
  signal,
  reset,
  delete: (play, step) => deleteWorkflow(play, step.delete),
  lose: (play) => ownServers(play).loseTemporal(),
  sweep: sweepNow,
  freeze: (play, step) => setFrozen(play, step.freeze, true),
  unfreeze: (play, step) => setFrozen(play, step.unfreeze, false),
};

export async function playStep(play: Play, { word, step, line }: Step): Promise<void> {
  const handler = HANDLERS[word] as Handler<StepWord>;
  await handler(play, step, line);
}

function setFrozen(play: Play, budget: string, isFrozen: boolean): Promise<unknown> {
  return setBudgetFrozen(play.stage.ledger, {
    budgetId: play.nameOf(budget),
    isFrozen,
    actor: 'scenario',
    reason: 'the scenario says so',
  });
}

async function start(play: Play, what: StepOf<'start'>['start']): Promise<void> {
  if (what === 'worker') {
    const { pid } = await play.stage.startWorker();
    play.tell(`a worker has started, process ${pid}`);
    return;
  }
  await ownServers(play).start(what);
  if (what === 'postgres') play.ledgerIsAway = false;
}

function ownServers(play: Play): NonNullable<Play['ownServers']> {
  if (play.ownServers === undefined) {
    throw new PlayError('servers that were given are never stopped; use `cut` and `pass` instead');
  }
  return play.ownServers;
}

function gateOf({ stage }: Play, way: StepOf<'cut'>['cut']): Gate {
  return { ledger: stage.ledgerGate, temporal: stage.temporalGate, provider: stage.providerGate }[
    way
  ];
}

/** The key of the newest attempt, as the provider saw it. */
async function keyOf(play: Play, name: string): Promise<string> {
  const snapshot = await operationOf(play, callOf(play, name));
  const key = snapshot?.attempts.at(-1)?.attemptKey;
  if (key === undefined)
    throw new PlayError(`"${name}" has no attempt that the provider could know`);
  return key;
}

function credits(play: Play, text: StepOf<'correct'>['charge']): string {
  return toAmount(text, 'credit', play.scenario.numbers).toString();
}

async function report(play: Play, step: StepOf<'report'>): Promise<void> {
  const snapshot = await operationOf(play, callOf(play, step.report));
  const attempt = snapshot?.attempts.find(({ attemptNo }) => attemptNo === step.attempt);
  if (attempt === undefined) throw new PlayError(`"${step.report}" has no attempt ${step.attempt}`);
  const amount = toPositive(step.amount, attempt.unit, play.scenario.numbers);
  for (let time = 0; time < step.times; time += 1) {
    const { status } = await recordChargeReport(play.stage.ledger, {
      provider: attempt.provider,
      attemptKey: attempt.attemptKey,
      report: {
        basis: step.basis,
        amount: amount.toString() as never,
        evidence: { source: 'webhook', reference: step.id },
      },
    });
    play.tell(`a report of ${amount} for "${step.report}" is ${status}`);
  }
}

async function forward(play: Play, step: StepOf<'forward'>): Promise<void> {
  const { stage } = play;
  if (step.clock !== 'ledger') await stage.provider.order('clock', { advanceMs: step.forward });
  if (step.clock !== 'provider') await forwardLedgerClock(stage.databaseAdminUrl, step.forward);
}

async function awaitAnswer(play: Play, step: StepOf<'answer'>, line: number): Promise<void> {
  const heard = await callOf(play, step.answer).handle.awaitAnswer(step.caller_waits);
  check(play, {
    name: `call ${step.answer} answer`,
    expected: step.is,
    actual: heard.status,
    source: 'what the caller hears',
    line,
  });
}
