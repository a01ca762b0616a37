// Worker
// ------
// One process serves all four queues: workflows, and the three kinds of activities.

import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';
import { NativeConnection, type State, Worker, type WorkerOptions } from '@temporalio/worker';
import { Client } from '@temporalio/client';
import type { NativeConnectionOptions } from '@temporalio/worker';
import type { PlaceHoldInput } from '../activities/contract.js';
import type { ActivityDependencies } from '../activities/dependencies.js';
import { createDispatchActivities } from '../activities/dispatch.js';
import { createLedgerActivities } from '../activities/ledger-activities.js';
import { createReconcileActivities } from '../activities/ask.js';
import { createSweepActivities } from '../activities/sweep.js';
import { createFollowActivities, createTaskActivities } from '../activities/task-activities.js';
import { createSupervisors } from '../client/supervisors.js';
import { taskQueuesOf } from '../workflows/task-queues.js';

export interface WorkerSettings {
  readonly temporal: NativeConnectionOptions;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly dependencies: ActivityDependencies;
  /** How long running sends may go on after SIGTERM, in milliseconds. */
  readonly shutdownGraceMs: number;
}

export interface QueueState {
  readonly taskQueue: string;
  /** Temporal's own word; RUNNING is the one that serves. */
  readonly state: State;
}

export interface RunningWorker {
  readonly queues: () => readonly QueueState[];
  /** One question to the Temporal server; throws when it is not answered in time. */
  readonly askServer: (limitMs: number) => Promise<void>;
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

/** One worker a queue, each with the activities that are handed out there. */
function createWorkers(settings: WorkerSettings, connection: NativeConnection): Promise<Worker[]> {
  const common = {
    connection,
    namespace: settings.namespace,
    shutdownGraceTime: settings.shutdownGraceMs,
    shutdownForceTime: settings.shutdownGraceMs + 5_000,
  };
  const queues = taskQueuesOf(settings.taskQueue);
  const { dependencies, namespace } = settings;
  const ledgerActivities = createLedgerActivities(dependencies);
  const supervisors = createSupervisors(new Client({ connection, namespace }), settings.taskQueue);
  return Promise.all([
    Worker.create({
      ...common,
      ...workflowSource(),
      taskQueue: queues.workflows,
      activities: {
        // Local: it runs beside the workflow, and needs no queue.
        placeHold: (request: PlaceHoldInput) => ledgerActivities.placeHold(request),
        // On the workflow's own queue, so that the server hands it out with the workflow's task.
        ...createDispatchActivities(dependencies),
      },
      maxConcurrentActivityTaskExecutions: 100,
      // A bounded cache: a supervisor that waits for days costs memory only while it is cached.
      maxCachedWorkflows: 250,
      maxConcurrentWorkflowTaskExecutions: 40,
      // A killed worker's workflows are taken over within seconds.
      stickyQueueScheduleToStartTimeout: '3 seconds',
    }),
    Worker.create({
      ...common,
      taskQueue: queues.ledger,
      activities: {
        ...ledgerActivities,
        ...createTaskActivities(dependencies),
        ...createSweepActivities({ dependencies, supervisors }),
      },
      maxConcurrentActivityTaskExecutions: 20,
    }),
    Worker.create({
      ...common,
      taskQueue: queues.reconcile,
      activities: {
        ...createReconcileActivities(dependencies),
        ...createFollowActivities(dependencies, supervisors),
      },
      maxConcurrentActivityTaskExecutions: 50,
    }),
  ]);
}

/** Throws when the server or the namespace is not there. */
export async function startWorker(settings: WorkerSettings): Promise<RunningWorker> {
  const connection = await NativeConnection.connect(settings.temporal);
  const workers = await createWorkers(settings, connection);
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
  return {
    finished,
    shutdown,
    connection,
    queues: () =>
      workers.map((worker) => ({
        taskQueue: worker.options.taskQueue,
        state: worker.getState(),
      })),
    async askServer(limitMs) {
      await connection.withDeadline(Date.now() + limitMs, () =>
        connection.workflowService.getSystemInfo({}),
      );
    },
  };
}
