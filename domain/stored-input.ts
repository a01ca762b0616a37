// Stored input
// ------------
// What a supervisor is started with when its operation stands in the ledger already and its first
// supervisor is gone: no request, and so no right to send. It withdraws what was not sent, and asks
// about the rest.

import { idProblem, isRecord } from './input-fields.js';

export interface StoredInput {
  readonly accountId: string;
  readonly operationId: string;
  readonly stored: true;
}

/** Undefined for an input of any other form. */
export function readStoredInput(raw: unknown): StoredInput | undefined {
  if (!isRecord(raw) || raw['stored'] !== true) return undefined;
  const problems = ['accountId', 'operationId'].flatMap((field) => idProblem(field, raw[field]));
  return problems.length > 0 ? undefined : (raw as unknown as StoredInput);
}
