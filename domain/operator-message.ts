// Operator message
// ----------------
// What comes with a wish: who has it, why, and an id that makes a repeat no second wish. A signal may
// carry anything, or nothing, and is taken all the same; an update is checked first.

import { idProblem, isRecord, type Problem, say, unknownFieldProblems } from './input-fields.js';

export interface OperatorMessage {
  readonly by: string;
  readonly reason?: string;
  readonly requestId?: string;
}

const FIELDS: ReadonlySet<string> = new Set(['requestId', 'by', 'reason']);
const TEXT_LENGTH_MAX = 200;
const NOBODY = 'somebody who gave no name';

/** Total: whatever arrives, there is a message; `problems` says what a checked one would be refused for. */
export function readMessage(raw: unknown): {
  readonly message: OperatorMessage;
  readonly problems: readonly Problem[];
} {
  if (!isRecord(raw)) {
    const example = '{"requestId": "r-1", "by": "ada", "reason": "stuck"}';
    const problems = [{ field: 'input', message: `is ${say(raw)}; give one object: ${example}` }];
    return { message: { by: NOBODY }, problems };
  }
  const problems = [
    ...['requestId', 'by', 'reason'].flatMap((field) => idProblem(field, raw[field])),
    ...unknownFieldProblems(raw, 'this message', FIELDS),
  ];
  const reason = textOf(raw['reason']);
  const requestId = textOf(raw['requestId']);
  return {
    message: {
      by: textOf(raw['by']) ?? NOBODY,
      ...(reason !== undefined && { reason }),
      ...(requestId !== undefined && { requestId }),
    },
    problems,
  };
}

/** What a database can store and a list can show. */
function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  // eslint-disable-next-line no-control-regex -- control characters are exactly what is looked for
  const text = value.replace(/[\u0000-\u001f\u007f-\u009f]|[\uD800-\uDFFF]/g, '').trim();
  return text === '' ? undefined : text.slice(0, TEXT_LENGTH_MAX);
}
