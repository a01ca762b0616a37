// Call input
// ----------
// What a caller asks for, checked by hand: this runs in workflows, where no schema library belongs.
// Every problem names the field, the value and what would be right.

import { ID_RULE, problemOfId } from './identity.js';

export interface LlmCallInput {
  readonly accountId: string;
  /** Default: what the workflow id says. */
  readonly operationId?: string;
  readonly route: string;
  /** The most completion tokens that may be bought. It is priced, held and sent. */
  readonly maxTokens: number;
  /** The request itself: it then stands in the workflow history. */
  readonly request?: CallRequest;
  /** Or a reference to its text in the body store, which keeps it out of the history. */
  readonly requestRef?: string;
  readonly tags?: readonly string[];
  readonly endUser?: string;
  readonly taskId?: string;
  /** Names this asking; a client that repeats itself keeps it. */
  readonly askId?: string;
}

export type CallRequest = Readonly<Record<string, unknown>>;

export interface Problem {
  readonly field: string;
  readonly message: string;
}

const REQUEST_BYTES_MAX = 65_536;

/** Fields of a chat request whose cost is bounded by its bytes and by `maxTokens`. */
const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'temperature',
  'top_p',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'response_format',
  'tools',
  'tool_choice',
  'user',
  'stream',
]);
const BOUND_FIELDS: ReadonlySet<string> = new Set([
  'max_tokens',
  'max_completion_tokens',
  'n',
  'model',
]);
const INPUT_FIELDS: ReadonlySet<string> = new Set([
  'accountId',
  'operationId',
  'route',
  'maxTokens',
  'request',
  'requestRef',
  'tags',
  'endUser',
  'taskId',
  'askId',
]);
const REFERENCE = /^sha256:[0-9a-f]{64}$/;

export type ReadInput =
  | { readonly kind: 'input'; readonly input: LlmCallInput }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** Takes anything. The route's own limit on `maxTokens` is checked later, by who knows the route. */
export function readLlmCallInput(raw: unknown): ReadInput {
  if (!isRecord(raw)) {
    return refuse([
      {
        field: 'input',
        message: `is ${say(raw)}; give one object, such as {"accountId": "acme", …}`,
      },
    ]);
  }
  const problems: Problem[] = [
    ...idProblems(raw),
    ...maxTokensProblems(raw['maxTokens']),
    ...requestProblems(raw),
    ...tagProblems(raw['tags']),
    ...Object.keys(raw)
      .filter((field) => !INPUT_FIELDS.has(field))
      .map((field) => ({
        field,
        message: `is not a field of llmCall; it takes ${[...INPUT_FIELDS].join(', ')}`,
      })),
  ];
  return problems.length > 0
    ? refuse(problems)
    : { kind: 'input', input: raw as unknown as LlmCallInput };
}

export function describeProblems(problems: readonly Problem[]): string {
  return problems.map((problem) => `${problem.field} ${problem.message}`).join('; ');
}

const refuse = (problems: readonly Problem[]): ReadInput => ({ kind: 'problems', problems });

function idProblems(raw: Record<string, unknown>): Problem[] {
  const required = ['accountId', 'route'];
  const optional = ['operationId', 'endUser', 'taskId', 'askId'].filter(
    (field) => raw[field] !== undefined,
  );
  return [...required, ...optional].flatMap((field) => {
    const problem = problemOfId(raw[field]);
    return problem === undefined ? [] : [{ field, message: `is ${problem}; give ${ID_RULE}` }];
  });
}

export function maxTokensProblems(value: unknown, max?: number): Problem[] {
  const isRight = typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
  const range = max === undefined ? '1 or more' : `1 to ${max}`;
  if (isRight && (max === undefined || value <= max)) return [];
  return [{ field: 'maxTokens', message: `is ${say(value)}; give a whole number, ${range}` }];
}

function tagProblems(tags: unknown): Problem[] {
  if (tags === undefined) return [];
  if (!Array.isArray(tags))
    return [{ field: 'tags', message: `is ${say(tags)}; give a list of texts` }];
  return tags.flatMap((tag, index) => {
    const problem = problemOfId(tag);
    return problem === undefined
      ? []
      : [{ field: `tags[${index}]`, message: `is ${problem}; give ${ID_RULE}` }];
  });
}

function requestProblems(raw: Record<string, unknown>): Problem[] {
  const { request, requestRef } = raw;
  if ((request === undefined) === (requestRef === undefined)) {
    return [
      {
        field: 'request',
        message: 'is given together with requestRef, or neither is; give exactly one of them',
      },
    ];
  }
  if (requestRef !== undefined) {
    return typeof requestRef === 'string' && REFERENCE.test(requestRef)
      ? []
      : [
          {
            field: 'requestRef',
            message: `is ${say(requestRef)}; give "sha256:" and 64 hex digits, as the body store answers`,
          },
        ];
  }
  return bodyProblems(request);
}

/** Also for a body that came by reference. */
export function bodyProblems(request: unknown): Problem[] {
  if (!isRecord(request)) {
    return [{ field: 'request', message: `is ${say(request)}; give an object with messages` }];
  }
  const byteCount = utf8ByteCount(JSON.stringify(request));
  if (byteCount > REQUEST_BYTES_MAX) {
    return [
      {
        field: 'request',
        message: `has ${byteCount} bytes; at most ${REQUEST_BYTES_MAX} are taken`,
      },
    ];
  }
  const problems: Problem[] = Object.keys(request).flatMap((field) => {
    if (BOUND_FIELDS.has(field)) {
      return [
        {
          field: `request.${field}`,
          message:
            'is set by the route and maxTokens, so that what is held is what is sent; leave it out',
        },
      ];
    }
    return REQUEST_FIELDS.has(field)
      ? []
      : [
          {
            field: `request.${field}`,
            message: `has no known bound on its cost; allowed are ${[...REQUEST_FIELDS].join(', ')}`,
          },
        ];
  });
  return [...problems, ...messageProblems(request['messages']), ...toolProblems(request['tools'])];
}

function messageProblems(messages: unknown): Problem[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    return [
      {
        field: 'request.messages',
        message: `is ${say(messages)}; give a list of at least one message`,
      },
    ];
  }
  return messages.flatMap((message: unknown, index) => {
    const field = `request.messages[${index}]`;
    if (!isRecord(message) || typeof message['role'] !== 'string') {
      return [{ field, message: `is ${say(message)}; give {"role": "user", "content": "…"}` }];
    }
    const { content } = message;
    const isText =
      typeof content === 'string' ||
      content === null ||
      content === undefined ||
      (Array.isArray(content) &&
        content.every((part) => isRecord(part) && part['type'] === 'text'));
    return isText
      ? []
      : [
          {
            field: `${field}.content`,
            message: 'has a part that is not text; only text has a known bound',
          },
        ];
  });
}

function toolProblems(tools: unknown): Problem[] {
  if (tools === undefined) return [];
  const areFunctions =
    Array.isArray(tools) && tools.every((tool) => isRecord(tool) && tool['type'] === 'function');
  return areFunctions
    ? []
    : [
        {
          field: 'request.tools',
          message: 'has a tool that is no function; the cost of hosted tools has no known bound',
        },
      ];
}

/**
 * The most input tokens a request can be: a byte-level token covers at least one byte, plus what a
 * chat template adds for each message.
 */
export function inputTokensAtMost(requestText: string, messageCount: number): number {
  return utf8ByteCount(requestText) + 16 * messageCount + 16;
}

function utf8ByteCount(text: string): number {
  let count = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    count += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return count;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function say(value: unknown): string {
  if (value === undefined) return 'missing';
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return typeof value;
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
