// Identity
// --------
// Ids chosen by callers. Unique within an account, for ever; they become part of a workflow id and,
// hashed by the ledger, of the key that the provider sees. Never a run id, never anything random.

/** Shorter than Temporal's and Postgres visibility's 255, with room for the prefix of a workflow id. */
const ID_LENGTH_MAX = 200;

// eslint-disable-next-line no-control-regex -- control characters are exactly what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

/** Half of a surrogate pair: JSON can carry it, and no database can store it. */
const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

/** What is wrong with an id, in words that complete "it is …"; undefined when it is a good one. */
export function problemOfId(id: unknown): string | undefined {
  if (typeof id !== 'string') return id === undefined ? 'missing' : 'not a text';
  if (id === '') return 'empty';
  if (id.length > ID_LENGTH_MAX) return `${id.length} characters long`;
  if (CONTROL.test(id)) return 'a text with control characters';
  if (LONE_SURROGATE.test(id)) return 'a text with half a character (a lone surrogate)';
  if (id.trim() !== id) return 'a text with spaces around it';
  return undefined;
}

export const ID_RULE = `a text of 1 to ${ID_LENGTH_MAX} characters without control characters or spaces around it`;

/** The two kinds of operation; the kind says which supervisor watches it. */
export type OperationKind = 'call' | 'job';

const SUPERVISORS = { call: 'llmCall', job: 'remoteJob' } as const;

/** The workflow type of an operation's supervisor. */
export function supervisorOf(kind: OperationKind): (typeof SUPERVISORS)[OperationKind] {
  return SUPERVISORS[kind];
}

export function operationWorkflowId(
  kind: OperationKind,
  accountId: string,
  operationId: string,
): string {
  return `${kind}/${accountId}/${operationId}`;
}

export function taskWorkflowId(taskId: string): string {
  return `task/${taskId}`;
}

/** A workflow id chosen by a plain Temporal client is also the default operation id. */
export function operationIdOf(kind: OperationKind, workflowId: string, accountId: string): string {
  const prefix = operationWorkflowId(kind, accountId, '');
  return workflowId.startsWith(prefix) && workflowId.length > prefix.length
    ? workflowId.slice(prefix.length)
    : workflowId;
}

/** The workflows' queue. Another name, in HOLDFAST_TASK_QUEUE, parts two fleets in one namespace. */
export const DEFAULT_TASK_QUEUE = 'holdfast';
