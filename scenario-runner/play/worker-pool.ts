// Worker processes: started when they are needed, or taken from spare ones that have loaded
// everything and wait for their environment.

import { join } from 'node:path';
import { type SpawnedProcess, spawnProcess } from '../../devstack/processes.js';

export interface WorkerPool {
  /** A worker that serves with this environment, on top of this process's own. */
  take(environment: Readonly<Record<string, string>>): Promise<SpawnedProcess>;
  close(): Promise<void>;
}

interface WorkerPoolOptions {
  readonly distDir: string;
  readonly workDir: string;
  /** How many wait, loaded; 0 starts each when it is needed. */
  readonly spareCount: number;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const spares: Promise<SpawnedProcess>[] = [];
  let startedCount = 0;
  let isClosed = false;
  const start = (environment: Readonly<Record<string, string>>): Promise<SpawnedProcess> => {
    startedCount += 1;
    return spawnProcess({
      name: 'the worker',
      cwd: options.workDir,
      command: process.execPath,
      args: [join(options.distDir, 'worker', 'main.js')],
      env: { ...process.env, HOLDFAST_END_WITH_STDIN: '1', ...environment },
      logFile: join(options.workDir, `worker-${startedCount}.log`),
    });
  };
  const fill = (): void => {
    while (!isClosed && spares.length < options.spareCount) {
      const spare = start({ HOLDFAST_WAIT_FOR_ENVIRONMENT: '1' });
      // Whoever takes it hears of a failure.
      spare.catch(() => undefined);
      spares.push(spare);
    }
  };
  fill();
  return {
    async take(environment) {
      const spare = await spares.shift();
      if (spare === undefined) return start(environment);
      fill();
      const ready = spare.nextReady();
      spare.write(JSON.stringify(environment));
      await ready;
      return spare;
    },
    async close() {
      isClosed = true;
      const left = await Promise.allSettled(spares.splice(0));
      const alive = left.flatMap((spare) => (spare.status === 'fulfilled' ? [spare.value] : []));
      await Promise.all(alive.map((spare) => spare.stop('SIGKILL', 5_000)));
    },
  };
}
