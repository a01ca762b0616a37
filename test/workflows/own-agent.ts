// What somebody writes who has an agent of their own: a supervised job in one line.

import { superviseJob } from '../../workflows/supervised.js';

export async function ownAgent(accountId: string, operationId: string): Promise<string> {
  const job = await superviseJob({
    ...{ accountId, operationId, route: 'fake-job', bound: { ticks: 10 }, request: {} },
  });
  return `${job.outcome} ${job.chargedAmount ?? 'unknown'}`;
}
