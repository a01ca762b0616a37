// Whether every figure can be what it is for, and every expectation names one: formulas are tried with the numbers
// of the file, and amounts with their unit.

import { evaluate, isFormula } from './formula.js';
import type { Scenario } from './scenario.js';
import type { Problem } from './unusable.js';

/** What only a caller who waits for the verdict can say. */
const HEARD_WORDS = [
  'hears',
  'reason',
  'needed',
  'available',
  'held',
  'unknown',
  'within',
  'caller_waits',
] as const;

type Path = readonly PropertyKey[];
type LineOf = (path: Path) => number;

/** Where a figure can be below zero. */
const SIGNED_WORDS: readonly PropertyKey[] = ['available'];
const AMOUNT_MAX = 2n ** 63n - 1n;
const DECIMALS = { credit: 0, usd: 9 } as const;
type Unit = keyof typeof DECIMALS;

export function checkFigures(scenario: Scenario, lineOf: LineOf): Problem[] {
  const problems: Problem[] = [];
  const complain = (path: Path, message: string): void => {
    problems.push({ line: lineOf(path), message: `${path.map(String).join('.')}: ${message}` });
  };
  for (const [path, value] of leavesOf(scenario)) {
    const message =
      problemOfFormula(scenario, path, value) ?? problemOfAmount(scenario, path, value);
    if (message !== undefined) complain(path, message);
  }
  checkDetached(scenario, complain);
  for (const [path, expectation] of expectationsOf(scenario)) {
    for (const empty of emptyPlaces(expectation, path)) {
      complain(empty, 'expects nothing; name at least one figure');
    }
    if (path[0] === 'steps' && expectation.excess !== undefined) {
      complain(
        [...path, 'excess'],
        "is judged over the whole run; give it in the file's own expect",
      );
    }
  }
  return problems;
}

/** Nothing that a detached asking would hear can be compared. */
function checkDetached({ steps }: Scenario, complain: (path: Path, message: string) => void): void {
  for (const [index, { word, step }] of steps.entries()) {
    const isAlone = word === 'call' || word === 'job';
    const askings = isAlone ? [step] : word === 'together' ? step.together : [];
    for (const asking of askings) {
      const unheard = HEARD_WORDS.find((heard) => asking[heard] !== undefined);
      if (asking.detached !== true || unheard === undefined) continue;
      complain(
        ['steps', index, isAlone ? unheard : 'together'],
        `a detached ${word === 'job' ? 'job' : 'call'} hears nothing, so that "${unheard}" would never be compared`,
      );
    }
  }
}

/** Every value of the file with the place where it stands. */
function leavesOf({ given, steps, expect, naive }: Scenario): [Path, unknown][] {
  const walk = (value: unknown, path: Path): [Path, unknown][] => {
    if (typeof value !== 'object' || value === null) return [[path, value]];
    return Object.entries(value).flatMap(([key, each]) =>
      walk(each, [...path, Array.isArray(value) ? Number(key) : key]),
    );
  };
  return walk({ given, steps: steps.map(({ step }) => step), expect, naive }, []);
}

function problemOfFormula({ numbers }: Scenario, path: Path, value: unknown): string | undefined {
  if (!isFormula(value)) return undefined;
  try {
    const result = evaluate(value, numbers);
    if (result < 0n && !SIGNED_WORDS.includes(path.at(-1) ?? '')) {
      return `the formula "${value}" is ${result}; give one that is 0 or more`;
    }
    return result > AMOUNT_MAX ? `the formula "${value}" is ${result}; ${TOO_LARGE}` : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const TOO_LARGE = `give at most ${AMOUNT_MAX}`;

/** A plain figure in the unit of its budget or price, where that is known. */
function problemOfAmount(scenario: Scenario, path: Path, value: unknown): string | undefined {
  const unit = unitAt(scenario, path);
  if (unit === undefined || isFormula(value)) return undefined;
  const text = String(value);
  const [whole = '', fraction = ''] = text.replace(/^-/, '').split('.');
  if (!/^\d+$/.test(whole)) return undefined;
  const decimals = DECIMALS[unit];
  if (fraction.length > decimals) {
    const right = decimals === 0 ? 'a whole number' : `at most ${decimals} decimals`;
    return `is "${text}" in ${unit}; give ${right}`;
  }
  const amount = BigInt(whole) * 10n ** BigInt(decimals);
  return amount > AMOUNT_MAX ? `is "${text}" in ${unit}; ${TOO_LARGE}` : undefined;
}

function unitAt({ given }: Scenario, path: Path): Unit | undefined {
  const [part, group, name = '', word = ''] = path.map(String);
  if (part === 'given' && group === 'prices' && word.startsWith('per_')) {
    const price = given.prices[name];
    return price === 'none' ? undefined : price?.unit;
  }
  const isLimit = part === 'given' && word === 'limit';
  const at = path.indexOf('budgets');
  return at >= 0 && (isLimit || path.includes('expect'))
    ? given.budgets[String(path[at + 1])]?.unit
    : undefined;
}

type Expectation = NonNullable<Scenario['expect']>;

function expectationsOf({ steps, expect }: Scenario): [Path, Expectation][] {
  return [
    ...steps.flatMap(({ word, step }, index): [Path, Expectation][] =>
      word === 'expect' ? [[['steps', index, 'expect'], step.expect]] : [],
    ),
    ...(expect === undefined ? [] : [[['expect'], expect] as [Path, Expectation]]),
  ];
}

/** Mappings and lists with nothing in them: they would be equal to anything. */
function emptyPlaces(value: unknown, path: Path): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  const entries = Object.entries(value);
  if (entries.length === 0) return [path];
  return entries.flatMap(([key, each]) => emptyPlaces(each, [...path, key]));
}
