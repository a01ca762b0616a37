// remoteJob
// ---------
// Supervises one remote job: admit, submit once, follow its status and its charge to the end. What is
// charged is known when the provider says so, and not when the work, or whoever wanted it, has ended.

import { readRemoteJobInput } from '../domain/job-input.js';
import type { OperationResult } from '../domain/operation-result.js';
import { superviseOperation } from './supervise.js';

export function remoteJob(raw: unknown): Promise<OperationResult> {
  return superviseOperation('job', raw, (given) => {
    const read = readRemoteJobInput(given);
    return read.kind === 'problems'
      ? read
      : { kind: 'asked', asked: { kind: 'job', input: read.input } };
  });
}
