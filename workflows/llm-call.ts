// llmCall
// -------
// Supervises one LLM call: admit, send once, settle; on silence unknown, and look up for ever.

import { readLlmCallInput } from '../domain/call-input.js';
import type { OperationResult } from '../domain/operation-result.js';
import { superviseOperation } from './supervise.js';

export function llmCall(raw: unknown): Promise<OperationResult> {
  return superviseOperation('call', raw, (given) => {
    const read = readLlmCallInput(given);
    return read.kind === 'problems'
      ? read
      : { kind: 'asked', asked: { kind: 'call', input: read.input } };
  });
}
