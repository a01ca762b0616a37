// docs/scenarios.md against the language: every block of it can be read, and every word has an example there.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { readScenario } from '../../scenario-runner/language/read-scenario.js';
import { scenarioForm } from '../../scenario-runner/language/scenario.js';
import { STEPS } from '../../scenario-runner/language/steps.js';
import { readRule } from '../../simulator/script/read-script.js';

const document = readFileSync(new URL('../../docs/scenarios.md', import.meta.url), 'utf8');
const blocks = [...document.matchAll(/^```yaml\n(.*?)^```$/gms)].map((match) => ({
  text: match[1] ?? '',
  line: document.slice(0, match.index).split('\n').length + 1,
}));

const PARTS: Readonly<Record<string, string>> = {
  scenario: 'scenario: fragment\n',
  about: 'about: A part of a file.\n',
  given: 'given: { budgets: { app: { limit: 100 } } }\n',
  steps: 'steps:\n  - { call: a }\n',
  expect: 'expect: { admitted: 1 }\n',
};

/** A list is steps; anything else is some of the parts of a file. Missing parts are added behind. */
function wholeOf(text: string): string {
  const isSteps = /^- /m.exec(text)?.index === 0;
  const callsIt = /\b(call|job|task): a\b/.test(text);
  const steps = `steps:\n${callsIt ? '' : '  - { call: a }\n'}${text.replace(/^(?=.)/gm, '  ')}`;
  const own = isSteps ? steps : text;
  const missing = Object.keys(PARTS).filter((part) => !new RegExp(`^${part}:`, 'm').test(own));
  return own + missing.map((part) => PARTS[part]).join('');
}

interface Form {
  readonly properties?: Readonly<Record<string, Form>>;
  readonly additionalProperties?: Form | false;
  readonly items?: Form;
  readonly anyOf?: readonly Form[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

/** The same forms stand in several places; an example in one of them is enough. */
const SHARED: Readonly<Record<string, string>> = {
  expect: 'expect',
  do: 'do',
  match: 'match',
  lookup: 'lookup',
  charge_lookup: 'lookup',
  answers: 'lookup',
  charge_answers: 'lookup',
};

/** Mappings from the ledger's words: kinds of events, reasons, outcomes. */
const LEDGER_WORDS = /\.(events|refused|outcomes|refusals)$/;

type Note = (word: string) => void;

/** Tells each word that a form has; with a value, only those that the value uses. */
function walk(form: Form, at: string, { note, value }: { note: Note; value?: unknown }): void {
  const isAsked = value === undefined;
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  const of = (key: string): unknown => (isAsked ? undefined : (value as never)[key]);
  for (const [key, inner] of Object.entries(form.properties ?? {})) {
    if (!isAsked && !(isMapping && key in value)) continue;
    // The ledger's own words stand in a table; one of them in an example is enough.
    const word = LEDGER_WORDS.test(at) ? '*' : key;
    note(`${at}.${word}`);
    walk(inner, SHARED[key] ?? `${at}.${word}`, { note, value: of(key) });
  }
  if (typeof form.additionalProperties === 'object') {
    const values = isAsked ? [undefined] : isMapping ? Object.values(value) : [];
    for (const each of values) walk(form.additionalProperties, `${at}.*`, { note, value: each });
  }
  if (form.items !== undefined) {
    const values = isAsked ? [undefined] : Array.isArray(value) ? (value as unknown[]) : [];
    const inner = at.endsWith('.together') ? 'call' : at;
    for (const each of values) walk(form.items, inner, { note, value: each });
  }
  for (const each of form.anyOf ?? []) walk(each, at, { note, value });
}

const formOf = (form: z.ZodType): Form => z.toJSONSchema(form, { io: 'input' }) as Form;

function wordsOf(file?: { readonly steps: readonly object[] }): Set<string> {
  const words = new Set<string>();
  const note: Note = (word) => void words.add(word);
  walk(formOf(scenarioForm), 'top', { note, ...(file !== undefined && { value: file }) });
  for (const [word, form] of Object.entries(STEPS)) {
    const own = file?.steps.filter((step) => Object.keys(step).some((key) => key === word));
    for (const value of own ?? [undefined]) walk(formOf(form), word, { note, value });
  }
  return words;
}

/** Words that are values, such as those of `reaches`. */
function valuesOf(form: Form): string[] {
  return [
    ...(form.enum ?? [form.const]).filter((value) => typeof value === 'string'),
    ...[
      ...Object.values(form.properties ?? {}),
      ...(typeof form.additionalProperties === 'object' ? [form.additionalProperties] : []),
      ...(form.items === undefined ? [] : [form.items]),
      ...(form.anyOf ?? []),
    ].flatMap(valuesOf),
  ];
}

describe('docs/scenarios.md', () => {
  test.each(blocks.map(({ line, text }) => [`line ${line}`, text] as const))(
    'the block at %s can be read',
    (name, text) => {
      expect(() => readScenario(wholeOf(text), name)).not.toThrow();
    },
  );

  test('has an example of every word', () => {
    const used = blocks.map(({ text }) => [
      ...wordsOf(parse(wholeOf(text)) as { steps: readonly object[] }),
    ]);
    const shown = new Set(used.flat());
    expect([...wordsOf()].filter((word) => !shown.has(word))).toEqual([]);
    expect(wordsOf().size).toBeGreaterThan(150);
  });

  test('names every value that a word can have', () => {
    const all = new Set(
      [scenarioForm, ...Object.values(STEPS)].flatMap((form) => valuesOf(formOf(form))),
    );
    const isNamed = (value: string): boolean => new RegExp(`\\b${value}\\b`).test(document);
    expect([...all].filter((value) => !isNamed(value))).toEqual([]);
    expect(all.size).toBeGreaterThan(60);
  });

  test('has no rule that the simulator would refuse', () => {
    const rules = blocks.flatMap(({ text, line }) => {
      const { given, steps } = readScenario(wholeOf(text), `line ${line}`);
      return [
        ...given.provider,
        ...steps.flatMap(({ word, step }) => (word === 'provider' ? [step.provider] : [])),
      ];
    });
    expect(rules.length).toBeGreaterThan(10);
    for (const rule of rules) expect(readRule(rule)).toMatchObject({ status: 'read' });
  });

  test('a word that the language does not have is told with its block', () => {
    expect(() => readScenario(wholeOf('- { call: a, rout: b }\n'), 'line 1')).toThrow(
      'line 1:2: steps.0.rout: unknown word; the nearest known word is "route"',
    );
  });
});
