// sweepHolds
// ----------
// One sweep, as the schedule starts it: whoever should ask about an open hold and does not is started
// again. It decides nothing: the ledger says who is overdue, and Temporal who lives.

import { proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { SweepActivities, SweepOptions, SweepSummary } from '../activities/contract.js';
import { taskQueuesOf } from './task-queues.js';

export async function sweepHolds(options: SweepOptions = {}): Promise<SweepSummary> {
  const { sweep } = proxyActivities<SweepActivities>({
    taskQueue: taskQueuesOf(workflowInfo().taskQueue).ledger,
    startToCloseTimeout: '2 minutes',
    // The next sweep comes by itself.
    retry: { maximumAttempts: 2 },
    cancellationType: 'TRY_CANCEL',
  });
  const summary = await sweep(options);
  const counts = new Map<string, number>();
  for (const { status } of summary.swept) counts.set(status, (counts.get(status) ?? 0) + 1);
  const told = [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
  setCurrentDetails(told === '' ? 'nobody was overdue' : told);
  return summary;
}
