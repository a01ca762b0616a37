// Worker
// ------
// One process serves all four queues: workflows, and the three kinds of activities.

import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { NativeConnectionOptions } from '@temporalio/worker';
import type { PlaceHoldInput } from '../activities/contract.js';
import type { ActivityDependencies } from '../activities/dependencies.js';
import { createDispatchActivities } from '../activities/dispatch.js';
import { createLedgerActivities } from '../activities/ledger-activities.js';
import { createReconcileActivities } from '../activities/ask.js';
import { taskQueuesOf } from '../workflows/task-queues.js';

export interface WorkerSettings {
  readonly temporal: NativeConnectionOptions;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly dependencies: ActivityDependencies;
  /** How long running sends may go on after SIGTERM, in milliseconds. */
  readonly shutdownGraceMs: number;
}

export interface RunningWorker {
  /** Resolves when every queue has stopped. */
  readonly finished: Promise<void>;
  readonly shutdown: () => void;
  /** A client in this process that uses it can have its workflows started without a queue between. */
  readonly connection: NativeConnection;
}

/** Compiled code has a bundle beside it; run from source, the workflows are bundled at start. */
function workflowSource(): Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'> {
  const codePath = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));
  return existsSync(codePath)
    ? { workflowBundle: { codePath } }
    : { workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)) };
}

/** Throws when the server or the namespace is not there. */
export async function startWorker(settings: WorkerSettings): Promise<RunningWorker> {
  const connection = await NativeConnection.connect(settings.temporal);
  const common = {
    connection,
    namespace: settings.namespace,
    shutdownGraceTime: settings.shutdownGraceMs,
    shutdownForceTime: settings.shutdownGraceMs + 5_000,
  };
  const queues = taskQueuesOf(settings.taskQueue);
  const ledgerActivities = createLedgerActivities(settings.dependencies);
  const workers = await Promise.all([
    Worker.create({
      ...common,
      ...workflowSource(),
      taskQueue: queues.workflows,
      activities: {
        // Local: it runs beside the workflow, and needs no queue.
        placeHold: (request: PlaceHoldInput) => ledgerActivities.placeHold(request),
        // On the workflow's own queue, so that the server hands it out with the workflow's task.
        ...createDispatchActivities(settings.dependencies),
      },
      maxConcurrentActivityTaskExecutions: 100,
      // A bounded cache: a supervisor that waits for days costs memory only while it is cached.
      maxCachedWorkflows: 500,
      maxConcurrentWorkflowTaskExecutions: 40,
      // A killed worker's workflows are taken over within seconds.
      stickyQueueScheduleToStartTimeout: '3 seconds',
    }),
    Worker.create({
      ...common,
      taskQueue: queues.ledger,
      activities: { ...ledgerActivities },
      maxConcurrentActivityTaskExecutions: 20,
    }),
    Worker.create({
      ...common,
      taskQueue: queues.reconcile,
      activities: { ...createReconcileActivities(settings.dependencies) },
      maxConcurrentActivityTaskExecutions: 50,
    }),
  ]);
  const runs = workers.map((worker) => worker.run());
  const shutdown = (): void => {
    for (const worker of workers) {
      if (worker.getState() === 'RUNNING') worker.shutdown();
    }
  };
  const finished = (async (): Promise<void> => {
    try {
      await Promise.all(runs);
    } finally {
      // One queue that fails ends the others: a worker that serves half is worse than none.
      shutdown();
      await Promise.allSettled(runs);
      await connection.close();
    }
  })();
  return { finished, shutdown, connection };
}
