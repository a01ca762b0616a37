// Reading a scenario
// ------------------
// From a file to a value that can be played. Whatever is unknown is refused with file, line and the
// nearest known word: a scenario never passes by saying nothing.

import { distance } from 'fastest-levenshtein';
import { checkFigures } from './check-figures.js';
import { checkReferences } from './check-references.js';
import { complain, propose } from './complaints.js';
import { readText } from './read-text.js';
import { type Scenario, scenarioForm } from './scenario.js';
import { type Step, STEPS, type StepWord } from './steps.js';
import { type Problem, UnusableFile } from './unusable.js';
import { lineOf, parseSource, type Path, type Source } from './yaml-source.js';

/** Numbers that replace those of the same name in the file. */
export type NumbersSet = Readonly<Record<string, number>>;

const PROBLEMS_SHOWN_MAX = 50;

/** Throws UnusableFile with every problem. */
export function readScenarioFile(file: string, set: NumbersSet = {}): Scenario {
  return readScenario(readText(file), file, set);
}

export function readScenario(text: string, file: string, set: NumbersSet = {}): Scenario {
  const source = parseSource(text);
  const raw: unknown = source.problems.length > 0 ? null : source.document.toJS();
  if (
    source.problems.length === 0 &&
    (typeof raw !== 'object' || Array.isArray(raw) || raw === null)
  ) {
    const what = raw === null ? 'is empty' : Array.isArray(raw) ? 'is a list' : 'is text';
    source.problems.push({
      line: 1,
      message: `${what}; a scenario is a mapping that begins with \`scenario: NAME\``,
    });
  }
  refuse(file, source.problems);

  const parsed = scenarioForm.safeParse(raw, { reportInput: true });
  if (!parsed.success) complain(source, parsed.error.issues, { before: [], form: scenarioForm });
  const steps = rawStepsOf(raw).flatMap((step, index) => readStep(source, step, index));
  refuse(file, source.problems);
  if (!parsed.success) throw parsed.error;

  const { about, pending, gateway, naive, given, expect } = parsed.data;
  const known = Object.entries(set).filter(([name]) => Object.hasOwn(parsed.data.numbers, name));
  const scenario: Scenario = {
    file,
    name: parsed.data.scenario,
    about,
    numbers: { ...parsed.data.numbers, ...Object.fromEntries(known) },
    given,
    steps,
    expectLine: lineOf(source, ['expect']),
    ...(pending !== undefined && { pending }),
    ...(gateway !== undefined && { gateway }),
    ...(naive !== undefined && { naive }),
    ...(expect !== undefined && { expect }),
  };
  const lineAt = (path: Path): number => lineOf(source, path);
  refuse(file, [...checkReferences(scenario, lineAt), ...checkFigures(scenario, lineAt)]);
  return scenario;
}

function refuse(file: string, problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  const inOrder = [...problems].sort((one, other) => one.line - other.line);
  throw new UnusableFile(file, inOrder.slice(0, PROBLEMS_SHOWN_MAX));
}

function rawStepsOf(value: unknown): unknown[] {
  const steps = (value as { steps?: unknown } | null)?.steps;
  return Array.isArray(steps) ? steps : [];
}

function readStep(source: Source, raw: unknown, index: number): Step[] {
  const before: Path = ['steps', index];
  const line = lineOf(source, before);
  const isMapping = typeof raw === 'object' && raw !== null && !Array.isArray(raw);
  const words = isMapping ? Object.keys(raw) : [];
  const word = words.find((each): each is StepWord => Object.hasOwn(STEPS, each));
  if (word === undefined) {
    source.problems.push({ line, message: `steps.${index}${unknownStep(words)}` });
    return [];
  }
  const form = STEPS[word];
  const parsed = form.safeParse(raw, { reportInput: true });
  if (!parsed.success) {
    complain(source, parsed.error.issues, { before, form });
    return [];
  }
  return [{ word, line, step: parsed.data } as Step];
}

/** Of the words that stand there, the one that is most likely meant to be a step's. */
function unknownStep(words: readonly string[]): string {
  const known = Object.keys(STEPS);
  const farness = (word: string): number => Math.min(...known.map((each) => distance(word, each)));
  const [nearest] = [...words].sort((one, other) => farness(one) - farness(other));
  return nearest === undefined
    ? `: give a mapping with one of ${known.join(', ')}`
    : `.${nearest}: unknown word${propose(nearest, known)}`;
}
