// Input fields
// ------------
// What the inputs of calls, jobs and tasks have in common, checked by hand: this runs in workflows,
// where no schema library belongs. Every problem names the field, the value and what would be right.

import { ID_RULE, problemOfId } from './identity.js';

export interface Problem {
  readonly field: string;
  readonly message: string;
}

const REFERENCE = /^sha256:[0-9a-f]{64}$/;

export function describeProblems(problems: readonly Problem[]): string {
  return problems.map((problem) => `${problem.field} ${problem.message}`).join('; ');
}

/** Who pays, by which route, and the ids that may be given. */
export function idProblems(raw: Record<string, unknown>): Problem[] {
  const required = ['accountId', 'route'];
  const optional = ['operationId', 'endUser', 'taskId', 'askId'].filter(
    (field) => raw[field] !== undefined,
  );
  return [...required, ...optional].flatMap((field) => idProblem(field, raw[field]));
}

export function idProblem(field: string, value: unknown): Problem[] {
  const problem = problemOfId(value);
  return problem === undefined ? [] : [{ field, message: `is ${problem}; give ${ID_RULE}` }];
}

export function tagProblems(tags: unknown): Problem[] {
  if (tags === undefined) return [];
  if (!Array.isArray(tags))
    return [{ field: 'tags', message: `is ${say(tags)}; give a list of texts` }];
  return tags.flatMap((tag, index) => idProblem(`tags[${index}]`, tag));
}

/** A request stands in the input itself, or its text is named by the digest that the body store answered. */
export function requestChoiceProblems(
  raw: Record<string, unknown>,
  inlineProblems: (request: unknown) => Problem[],
): Problem[] {
  const { request, requestRef } = raw;
  if ((request === undefined) === (requestRef === undefined)) {
    return [
      {
        field: 'request',
        message: 'is given together with requestRef, or neither is; give exactly one of them',
      },
    ];
  }
  if (requestRef === undefined) return inlineProblems(request);
  return typeof requestRef === 'string' && REFERENCE.test(requestRef)
    ? []
    : [
        {
          field: 'requestRef',
          message: `is ${say(requestRef)}; give "sha256:" and 64 hex digits, as the body store answers`,
        },
      ];
}

export function unknownFieldProblems(
  raw: Record<string, unknown>,
  owner: string,
  known: ReadonlySet<string>,
): Problem[] {
  return Object.keys(raw)
    .filter((field) => !known.has(field))
    .map((field) => ({
      field,
      message: `is not a field of ${owner}; it takes ${[...known].join(', ')}`,
    }));
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function say(value: unknown): string {
  if (value === undefined) return 'missing';
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return typeof value;
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

export function utf8ByteCount(text: string): number {
  let count = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    count += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return count;
}
