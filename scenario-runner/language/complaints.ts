// Complaints
// ----------
// From what zod found to sentences: each names the field, the value that stands there, and what would be right.

import { closest } from 'fastest-levenshtein';
import type { z } from 'zod';
import { STEPS } from './steps.js';
import { lineOf, type Path, type Source } from './yaml-source.js';

type Issue = z.core.$ZodIssue;

/** Where a form stands in the file, and the form itself: it has the words that would have been right. */
export interface Place {
  readonly before: Path;
  readonly form: unknown;
}

export function complain(source: Source, issues: readonly Issue[], at: Place): void {
  for (const issue of issues) {
    const path = [...at.before, ...issue.path];
    const say = (where: Path, message: string): void => {
      source.problems.push({ line: lineOf(source, where), message: `${named(where)}: ${message}` });
    };
    if (issue.code === 'unrecognized_keys') {
      const known = knownWords(at.form, issue.path);
      for (const key of issue.keys) say([...path, key], unknownWord(at, { key, known, issue }));
    } else {
      say(path, sentence(issue));
    }
  }
}

interface UnknownKey {
  readonly key: string;
  readonly known: readonly string[];
  readonly issue: Issue;
}

function unknownWord({ before }: Place, { key, known, issue }: UnknownKey): string {
  const isSecondWord = before.length > 0 && issue.path.length === 0 && Object.hasOwn(STEPS, key);
  return isSecondWord
    ? `a step has one word, and this one has "${known[0] ?? ''}" already; make it a step of its own`
    : `unknown word${propose(key, known)}`;
}

function named(path: Path): string {
  return path.length === 0 ? 'the file' : path.map(String).join('.');
}

export function propose(word: string, known: readonly string[]): string {
  return known.length === 0 ? '' : `; the nearest known word is "${closest(word, [...known])}"`;
}

const KINDS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a whole number',
  string: 'text, in quotes if it looks like a number',
  boolean: 'true or false',
  object: 'a mapping',
  record: 'a mapping',
  array: 'a list',
};

function sentence(issue: Issue): string {
  if (issue.code === 'invalid_value' && typeof issue.input === 'string') {
    const known = issue.values.map(String);
    return `unknown word "${issue.input}"${propose(issue.input, known)}; known are ${known.join(', ')}`;
  }
  if (issue.code === 'invalid_key') {
    return `is no name for this; ${issue.issues[0]?.message ?? 'give another'}`;
  }
  const right = whatIsRight(issue);
  if (issue.input === undefined) return `is missing; ${right}`;
  return `is ${shown(issue.input)}; ${right}`;
}

/** The forms' own messages begin with "give"; all others come from zod, and are said anew. */
function whatIsRight(issue: Issue): string {
  if (issue.message.startsWith('give ')) return issue.message;
  if (issue.code === 'invalid_type') return `give ${KINDS[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') {
    return `give ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
  }
  if (issue.code === 'too_small') {
    return `give ${KINDS_OF_MANY[issue.origin] ?? ''}${String(issue.minimum)} or more`;
  }
  if (issue.code === 'too_big') {
    return `give ${KINDS_OF_MANY[issue.origin] ?? ''}${String(issue.maximum)} or less`;
  }
  return `it does not fit: ${issue.message}`;
}

const KINDS_OF_MANY: Readonly<Record<string, string>> = {
  array: 'a list of ',
  string: 'text with a length of ',
};

const SHOWN_LENGTH_MAX = 60;

function shown(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object') return 'a mapping';
  const text = JSON.stringify(value);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
}

interface Form {
  readonly shape?: Readonly<Record<string, unknown>>;
  readonly def?: {
    readonly innerType?: unknown;
    readonly valueType?: unknown;
    readonly element?: unknown;
    readonly options?: readonly unknown[];
  };
}

/** The words that a mapping at this place of the form may have. */
function knownWords(form: unknown, path: Path): readonly string[] {
  let inner = form;
  for (const key of path) inner = childOf(inner, key);
  const found = bare(inner);
  const shape =
    found?.shape ?? bare(found?.def?.options?.find((option) => bare(option)?.shape))?.shape;
  return Object.keys(shape ?? {});
}

function bare(form: unknown): Form | undefined {
  let inner = form as Form | undefined;
  while (inner?.def?.innerType !== undefined) inner = inner.def.innerType as Form;
  return inner;
}

function childOf(form: unknown, key: PropertyKey): unknown {
  const inner = bare(form);
  return (
    inner?.shape?.[String(key)] ??
    inner?.def?.valueType ??
    inner?.def?.element ??
    inner?.def?.options?.find((option) => bare(option)?.shape !== undefined)
  );
}
