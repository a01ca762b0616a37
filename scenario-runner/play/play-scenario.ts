// Play a scenario
// ---------------
// On a stage that is open: books, behaviours and workers first, then step by step, the conservation
// check after each, and at the end what nobody asked for: the oracle over the whole run.

import { checkBooks } from '../../ledger/read.js';
import type { Scenario } from '../language/scenario.js';
import type { Step } from '../language/steps.js';
import { judgeRun } from '../judge/judge-run.js';
import { compare } from '../figures/compare.js';
import { type Check, PlayError, WaitedInVain } from './check.js';
import { check, type OwnServers, type Play } from './play.js';
import { type NameOf, openBooks } from './settings.js';
import type { Stage } from './stage.js';
import { playStep } from './steps.js';
import { newestEntryId } from './raw-ledger.js';

export interface PlayOptions {
  readonly scenario: Scenario;
  readonly stage: Stage;
  readonly distDir: string;
  /** Parts the names of this play from those of others on the same ledger. */
  readonly suffix: string;
  readonly ownServers?: OwnServers;
  readonly tell: (line: string) => void;
  /** Told of each play as soon as it is there, and of the line of each step that begins. */
  readonly onProgress?: (play: Play, line: number) => void;
}

export interface Played {
  readonly checks: readonly Check[];
  readonly notes: readonly string[];
  readonly play: Play;
}

/** Throws PlayError when it cannot go on; figures that are off are answered. */
export async function playScenario(options: PlayOptions): Promise<Played> {
  const { scenario, stage } = options;
  const nameOf: NameOf = (name) => `${name}-${options.suffix}`;
  const fromSeq = await stage.provider.newestSeq();
  const fromEntry = await newestEntryId(stage.databaseAdminUrl);
  const play: Play = {
    ...{ scenario, stage, nameOf, fromSeq },
    calls: new Map(),
    tasks: new Map(),
    checks: [],
    notes: [],
    ownServers: options.ownServers,
    distDir: options.distDir,
    tell: options.tell,
    ledgerIsAway: false,
  };
  await openBooks(stage.ledger, scenario, nameOf);
  await stage.provider.forgetRules();
  for (const rule of scenario.given.provider) await stage.provider.behave(rule);
  const missing = scenario.given.workers - stage.workerPids().length;
  await Promise.all(Array.from({ length: missing }, () => stage.startWorker()));

  const problems = new Set<string>();
  const isAtEnd = await takeSteps(play, problems, options);
  if (isAtEnd && scenario.expect !== undefined) {
    await compare(play, scenario.expect, scenario.expectLine);
  }
  check(play, {
    name: 'conservation',
    expected: '0',
    actual: String(problems.size),
    source: 'ledger.check() after every step',
    line: scenario.expectLine,
  });
  play.notes.push(...problems);
  await judgeRun(play, fromEntry);
  return { checks: play.checks, notes: play.notes, play };
}

/** False when a state did not come: that is a figure that is off, and the run is judged all the same. */
async function takeSteps(
  play: Play,
  problems: Set<string>,
  { scenario, stage, onProgress }: PlayOptions,
): Promise<boolean> {
  for (const step of scenario.steps) {
    onProgress?.(play, step.line);
    try {
      await tellingOfLong(play, step, () =>
        Promise.race([playStep(play, step), simulatorDeath(stage)]),
      );
    } catch (error) {
      if (!(error instanceof WaitedInVain)) throw error;
      check(play, {
        name: step.word.replaceAll('_', ' '),
        expected: 'the state that is waited for',
        actual: error.message,
        ok: false,
        source: 'the wait',
        line: step.line,
      });
      return false;
    }
    if (play.ledgerIsAway) continue;
    for (const { problem, subject, detail } of await checkBooks(stage.ledger)) {
      problems.add(`after line ${step.line}: ${problem} (${subject}: ${detail})`);
    }
  }
  return true;
}

/** Whoever watches hears what is going on, once it has taken two seconds. */
async function tellingOfLong(play: Play, step: Step, work: () => Promise<void>): Promise<void> {
  const subject = Object.values(step.step)[0];
  const named = typeof subject === 'string' ? ` ${subject}` : '';
  const timer = setTimeout(() => {
    play.tell(`still at line ${step.line}: ${step.word.replaceAll('_', ' ')}${named} …`);
  }, 2_000);
  try {
    await work();
  } finally {
    clearTimeout(timer);
  }
}

async function simulatorDeath(stage: Stage): Promise<never> {
  throw new PlayError(await stage.providerEnded);
}
