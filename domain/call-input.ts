// Call input
// ----------
// What a caller asks for, checked by hand: this runs in workflows, where no schema library belongs.
// Every problem names the field, the value and what would be right.

import {
  idProblems,
  isRecord,
  type Problem,
  requestChoiceProblems,
  say,
  tagProblems,
  unknownFieldProblems,
  utf8ByteCount,
} from './input-fields.js';

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
    ...requestChoiceProblems(raw, bodyProblems),
    ...tagProblems(raw['tags']),
    ...unknownFieldProblems(raw, 'llmCall', INPUT_FIELDS),
  ];
  return problems.length > 0
    ? refuse(problems)
    : { kind: 'input', input: raw as unknown as LlmCallInput };
}

const refuse = (problems: readonly Problem[]): ReadInput => ({ kind: 'problems', problems });

export function maxTokensProblems(value: unknown, max?: number): Problem[] {
  const isRight = typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
  const range = max === undefined ? '1 or more' : `1 to ${max}`;
  if (isRight && (max === undefined || value <= max)) return [];
  return [{ field: 'maxTokens', message: `is ${say(value)}; give a whole number, ${range}` }];
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
