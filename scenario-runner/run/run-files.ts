// Runs files, some at a time, in the order they were named; each says its verdict as soon as it has
// one.

import { resolve } from 'node:path';
import { type NumbersSet, readScenarioFile } from '../language/read-scenario.js';
import type { Scenario } from '../language/scenario.js';
import { UnusableFile } from '../language/unusable.js';
import type { Report } from './report.js';
import type { PlayFileOptions, Theatre } from './theatre.js';

export interface ReadFiles {
  readonly scenarios: readonly Scenario[];
  readonly unusable: readonly UnusableFile[];
}

/** Reads all of them before anything is played; numbers that were set replace those of the files. */
export function readFiles(files: readonly string[], set: NumbersSet = {}): ReadFiles {
  const scenarios: Scenario[] = [];
  const unusable: UnusableFile[] = [];
  const seen = new Map<string, string>();
  for (const file of [...new Set(files.map((each) => resolve(each)))]) {
    try {
      const scenario = readScenarioFile(file, set);
      const other = seen.get(scenario.name);
      if (other !== undefined) {
        throw new UnusableFile(file, [
          { line: 1, message: `its name "${scenario.name}" is also that of ${other}` },
        ]);
      }
      seen.set(scenario.name, file);
      scenarios.push(scenario);
    } catch (error) {
      if (!(error instanceof UnusableFile)) throw error;
      unusable.push(error);
    }
  }
  return { scenarios, unusable };
}

export async function playFiles(
  theatre: Theatre,
  scenarios: readonly Scenario[],
  options: PlayFileOptions & {
    readonly jobs: number;
    readonly onReport: (report: Report) => void;
    /** Told of a file that takes longer than two seconds. */
    readonly onSlow: (name: string) => void;
  },
): Promise<Report[]> {
  const reports: Report[] = [];
  const waiting = [...scenarios];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { name } = next;
      const timer = setTimeout(() => {
        options.onSlow(name);
      }, 2_000);
      const report = await theatre.play(next, options).finally(() => {
        clearTimeout(timer);
      });
      reports.push(report);
      options.onReport(report);
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, work));
  return reports;
}
