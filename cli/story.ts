// The story
// ---------
// The acts of `npm start` are scenario files, told on one stage that stays; the first is also told by
// the control arm. Every figure is read at print time, and what is expected follows from the numbers.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readScenarioFile } from '../scenario-runner/language/read-scenario.js';
import type { Scenario } from '../scenario-runner/language/scenario.js';
import { type NaivePlayed, playNaive } from '../scenario-runner/naive/play-naive.js';
import type { Check } from '../scenario-runner/play/check.js';
import { playScenario } from '../scenario-runner/play/play-scenario.js';
import type { Stage } from '../scenario-runner/play/stage.js';

/** One figure of the story, read at print time from the source that is named. */
export interface Figure {
  readonly act: number;
  readonly figure: string;
  readonly expected: string;
  readonly actual: string;
  readonly source: string;
  readonly ok: boolean;
}

export function readStory(
  folder: string,
  numbers: Readonly<Record<string, number>>,
): readonly Scenario[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => readScenarioFile(join(folder, file), numbers));
}

export interface StoryOptions {
  readonly stage: Stage;
  readonly acts: readonly Scenario[];
  readonly distDir: string;
  /** Ends the ids of this telling, so that the same ledger can hear the story again. */
  readonly suffix: string;
  readonly say: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

export async function tellStory(options: StoryOptions): Promise<void> {
  const { stage, acts, distDir, suffix, say } = options;
  const tell = (line: string): void => {
    say(`    ${line}`);
  };
  for (const [index, scenario] of acts.entries()) {
    const act = index + 1;
    say('');
    say(`Act ${act}, ${scenario.name.replaceAll('-', ' ')}. ${scenario.about}`);
    const naive =
      scenario.naive === undefined
        ? undefined
        : await playNaive({ scenario, provider: stage.provider, tell });
    for (const check of naive?.checks ?? []) {
      // That the naive arm breaks the cap is what it is there to show.
      if (check.name === 'cap') continue;
      options.onFigure(figureOf(act, check));
      tell(`${check.ok ? 'ok ' : 'OFF'} ${check.name}: ${check.actual}  (${check.source})`);
    }
    const { checks } = await playScenario({ scenario, stage, distDir, suffix, tell });
    for (const check of checks) options.onFigure(figureOf(act, check));
    if (naive !== undefined) tellBoth(say, naive, checks);
  }
}

function figureOf(act: number, check: Check): Figure {
  const { name, expected, actual, source, ok } = check;
  return { act, figure: name, expected, actual, source, ok };
}

function tellBoth(
  say: (line: string) => void,
  naive: NaivePlayed,
  holdfast: readonly Check[],
): void {
  const actual = (checks: readonly Check[], name: string): string =>
    checks.find((check) => check.name === name)?.actual ?? 'unknown';
  say('');
  say('              admitted   charged');
  for (const [name, admitted, charged] of [
    ['naive   ', String(naive.admittedCount), actual(naive.checks, 'naive charged')],
    ['holdfast', actual(holdfast, 'admitted'), actual(holdfast, 'provider charged')],
  ] as const) {
    say(`  ${name}    ${admitted.padStart(8)}${charged.padStart(10)}`);
  }
}
