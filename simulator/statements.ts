// Statements
// ----------
// What an execution says of itself, in an answer and to a lookup. The truth is in the book; here it may be bent.

import type { Execution } from './book/state.js';

type Usage = Readonly<Record<'prompt_tokens' | 'completion_tokens' | 'total_tokens', number>>;

export type Stated = {
  readonly usage?: Usage | null;
  readonly charge?: { readonly amount: string; readonly unit: 'credit' } | null;
};

const LONGEST_CONTENT = 64;

export function isShownRunning(execution: Execution): boolean {
  if (execution.state === 'running') return true;
  return !execution.released && execution.switches.lookup?.running_until_released === true;
}

export function stateMoney(execution: Execution): Stated {
  return { ...stateUsage(execution), ...stateCharge(execution) };
}

function isLaterYet({ released, shownCount, switches }: Execution): boolean {
  return released || (switches.later_lookups !== undefined && shownCount > switches.later_lookups);
}

function stateUsage(execution: Execution): Stated {
  const { promptTokens: prompt, completionTokens: completion, switches } = execution;
  const exact = countUsage(prompt, completion);
  switch (switches.usage) {
    case undefined:
    case 'exact':
      return { usage: exact };
    case 'missing':
      return {};
    case 'null':
      return { usage: null };
    case 'zero':
      return { usage: countUsage(0, 0) };
    case 'inconsistent':
      return { usage: { ...exact, total_tokens: exact.total_tokens + 7 } };
    case 'negative':
      return { usage: countUsage(prompt, -completion) };
    case 'later':
      return isLaterYet(execution) ? { usage: exact } : {};
  }
}

function countUsage(prompt: number, completion: number): Usage {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
}

/** What is charged is as late as the usage unless the script says otherwise. */
function stateCharge(execution: Execution): Stated {
  const { switches, charged } = execution;
  const form = switches.charge_field ?? (switches.usage === 'later' ? 'later' : 'present');
  if (form === 'absent') return {};
  if (form === 'null') return { charge: null };
  if (form === 'later' && !isLaterYet(execution)) return {};
  return { charge: { amount: charged, unit: 'credit' } };
}

export function stateReceipt(execution: Execution): Record<string, unknown> {
  const { id, key, switches } = execution;
  const model = switches.stated_model ?? execution.model;
  if (isShownRunning(execution)) {
    return { id, key, status: 'running', model, usage: null, charge: null };
  }
  return { id, key, status: execution.state, model, ...stateMoney(execution) };
}

export function stateCompletion(execution: Execution): Record<string, unknown> {
  return {
    ...headOf(execution, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: contentOf(execution) },
        finish_reason: finishReasonOf(execution),
      },
    ],
    ...stateMoney(execution),
  };
}

/** The chunks of a streamed answer, without the closing mark. */
export function stateChunks(execution: Execution, includeUsage: boolean): readonly object[] {
  const head = headOf(execution, 'chat.completion.chunk');
  const words = contentOf(execution).split(/(?<= )/);
  const deltas: readonly object[] = [
    { role: 'assistant', content: '' },
    ...words.map((word) => ({ content: word })),
  ];
  const open = deltas.map((delta) => ({ index: 0, delta, finish_reason: null }));
  const choices = [...open, { index: 0, delta: {}, finish_reason: finishReasonOf(execution) }];
  const noUsage = includeUsage ? { usage: null } : {};
  const chunks: object[] = choices.map((choice) => ({ ...head, choices: [choice], ...noUsage }));
  if (includeUsage) chunks.push({ ...head, choices: [], ...stateMoney(execution) });
  return chunks;
}

function headOf(execution: Execution, object: string): Record<string, unknown> {
  return {
    ...(execution.statedId === null ? {} : { id: execution.statedId }),
    object,
    created: Math.floor(execution.acceptedAtMs / 1000),
    model: execution.switches.stated_model ?? execution.model,
  };
}

/** A word a token, cut short: nobody reads it, and a large count must not cost memory. */
function contentOf({ completionTokens }: Execution): string {
  return 'word '.repeat(Math.min(completionTokens, LONGEST_CONTENT)).trimEnd();
}

function finishReasonOf({ completionTokens, maxTokens }: Execution): 'length' | 'stop' {
  return completionTokens >= maxTokens ? 'length' : 'stop';
}
