// A worker, the simulator, and operations of every kind that the lists of the Temporal UI tell apart.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { readScenarioFile } from '../../scenario-runner/language/read-scenario.js';
import { setUpDatabase } from '../../scenario-runner/play/ledger-databases.js';
import { operationOf, type Play, callOf, workflowIdOf } from '../../scenario-runner/play/play.js';
import { playScenario } from '../../scenario-runner/play/play-scenario.js';
import { configText, routesGiven } from '../../scenario-runner/play/settings.js';
import { openStage, type Stage } from '../../scenario-runner/play/stage.js';
import { CHECKOUT } from './theatre.js';
import type { UiRun } from './ui-browser.js';

export interface UiStage {
  readonly stage: Stage;
  /** Figures of the story that are off, and what its oracle found. */
  readonly off: readonly string[];
  /** The workflow of an operation or a task, by its name in the story. */
  workflowId(name: string): string;
  /** Its newest run. */
  run(name: string): Promise<UiRun>;
  operation(name: string): Promise<OperationSnapshot>;
  /** Without any input. */
  signal(name: string, signalName: string): Promise<void>;
  close(): Promise<void>;
}

/** Plays the story and leaves everything as it stands at its end. */
export async function openUiStage(story: string): Promise<UiStage> {
  const scenario = readScenarioFile(story);
  const stage = await openStage({
    distDir: join(CHECKOUT, 'dist'),
    workDir: mkdtempSync(join(tmpdir(), 'holdfast-ui-')),
    database: await setUpDatabase({
      adminUrl: inject('databaseAdminUrl'),
      name: `ui_${process.pid}`,
      isTest: true,
    }),
    temporalAddress: inject('temporalAddress'),
    namespace: 'default',
    simulatorPrices: [],
    configText: (providerUrl) => configText(routesGiven([scenario]), providerUrl),
  });
  try {
    const { checks, notes, play } = await playScenario({
      ...{ scenario, stage, distDir: join(CHECKOUT, 'dist'), suffix: 'team' },
      tell: () => undefined,
    });
    const off = checks.filter(({ ok }) => !ok);
    return {
      stage,
      off: [
        ...off.map(({ name, expected, actual }) => `${name}: ${actual}, not ${expected}`),
        ...notes,
      ],
      workflowId: (name) => workflowIdOf(play, name),
      async run(name) {
        const workflowId = workflowIdOf(play, name);
        const { runId } = await stage.temporal.workflow.getHandle(workflowId).describe();
        return { workflowId, runId };
      },
      operation: (name) => operationIn(play, name),
      signal: (name, signalName) =>
        stage.temporal.workflow.getHandle(workflowIdOf(play, name)).signal(signalName),
      close: () => stage.close({ isHasty: true }),
    };
  } catch (error) {
    await stage.close({ isHasty: true });
    throw error;
  }
}

async function operationIn(play: Play, name: string): Promise<OperationSnapshot> {
  const snapshot = await operationOf(play, callOf(play, name));
  if (snapshot === undefined) throw new Error(`"${name}" is not in the ledger`);
  return snapshot;
}
