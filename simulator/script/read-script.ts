import { closest } from 'fastest-levenshtein';
import { z } from 'zod';
import { cancelSchema, findContradictions, lookupSchema, switchesSchema } from './switches.js';
import type { Switches } from './switches.js';

export type Read<T> =
  | { readonly status: 'read'; readonly value: T }
  | { readonly status: 'unreadable'; readonly message: string };

const matchSchema = z.strictObject({
  model: z.string().min(1).optional(),
  key: z.string().min(1).optional(),
  keyPrefix: z.string().min(1).optional(),
  nth: z.int().positive().optional(),
});

const ruleSchema = z.strictObject({
  match: matchSchema.optional(),
  times: z.int().positive().optional(),
  do: switchesSchema,
});

export type Rule = z.infer<typeof ruleSchema>;
export type Match = z.infer<typeof matchSchema>;

const knownWords: Readonly<Record<string, readonly string[]>> = {
  match: Object.keys(matchSchema.shape),
  do: Object.keys(switchesSchema.shape),
  lookup: Object.keys(lookupSchema.shape),
  charge_lookup: Object.keys(lookupSchema.shape),
  cancel: Object.keys(cancelSchema.shape),
};

/** Checks `value` and, where it does not fit, names the field and the nearest known word. */
export function readWith<T>(schema: z.ZodType<T>, value: unknown): Read<T> {
  const parsed = schema.safeParse(value, { reportInput: true });
  if (parsed.success) return { status: 'read', value: parsed.data };
  const outer = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  const messages = parsed.error.issues.map((issue) => explainIssue(issue, outer));
  return { status: 'unreadable', message: messages.join(' ') };
}

export function readRule(value: unknown): Read<Rule> {
  const read = readWith<Rule>(ruleSchema, value);
  if (read.status === 'unreadable') return read;
  const contradictions = [...findContradictions(read.value.do)];
  if (read.value.do.drop === 'before_reading' && read.value.match?.model !== undefined) {
    contradictions.push('match.model: a request that is not read has no model.');
  }
  return refuseContradictions(read, contradictions);
}

/** Reads one `do` object, as a header carries it. */
export function readSwitches(text: string): Read<Switches> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { status: 'unreadable', message: 'do: is not JSON.' };
  }
  const read = readWith<{ do: Switches }>(z.strictObject({ do: switchesSchema }), { do: value });
  if (read.status === 'unreadable') return read;
  return refuseContradictions(
    { status: 'read', value: read.value.do },
    findContradictions(read.value.do),
  );
}

function refuseContradictions<T>(read: Read<T>, contradictions: readonly string[]): Read<T> {
  if (contradictions.length === 0) return read;
  return { status: 'unreadable', message: contradictions.join(' ') };
}

function explainIssue(issue: z.core.$ZodIssue, outer: readonly string[]): string {
  const path = issue.path.map(String).join('.');
  const field = path === '' ? 'the body' : path;
  if (issue.code === 'unrecognized_keys') {
    const known = knownWords[String(issue.path.at(-1))] ?? outer;
    return issue.keys
      .map((key) => `${path === '' ? key : `${path}.${key}`}: unknown word${propose(key, known)}.`)
      .join(' ');
  }
  if (issue.code === 'invalid_value') {
    const input =
      typeof issue.input === 'string' ? issue.input : JSON.stringify(issue.input ?? null);
    return `${field}: unknown word "${input}"${propose(input, issue.values.map(String))}.`;
  }
  return `${field}: ${issue.message}.`;
}

function propose(word: string, known: readonly string[]): string {
  return known.length === 0 ? '' : `, the nearest known word is "${closest(word, [...known])}"`;
}
