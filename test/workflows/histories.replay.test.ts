import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  bundleWorkflowCode,
  DefaultLogger,
  Runtime,
  Worker,
  type WorkflowBundle,
} from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('../histories', import.meta.url));
const histories = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
let workflowBundle: WorkflowBundle;

beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  workflowBundle = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../../workflows/index.ts', import.meta.url)),
    logger: new DefaultLogger('ERROR'),
  });
});

type SavedHistory = {
  events: {
    activityTaskScheduledEventAttributes?: { activityType: { name: string } };
    workflowExecutionStartedEventAttributes?: { workflowId: string };
  }[];
};

const read = (name: string): SavedHistory =>
  JSON.parse(readFileSync(`${FOLDER}/${name}`, 'utf8')) as SavedHistory;

describe('saved histories', () => {
  test('there is one for each end', () => {
    const ends = [
      ...['settled-at-once', 'unknown-then-settled', 'refused', 'withdrawn', 'free'].map(
        (end) => `llm-call-0.1.0-${end}`,
      ),
      ...['settled', 'stopped-by-signal', 'taken-up-again'].map((end) => `remote-job-0.1.0-${end}`),
      ...['finished', 'stopped'].map((end) => `agent-task-0.1.0-${end}`),
    ];
    for (const end of ends) expect(histories, end).toContain(`${end}.json`);
  });

  test.each(histories)('%s replays', async (name) => {
    const history = read(name);
    // Ids of children are made from it.
    const { workflowId } = history.events[0]?.workflowExecutionStartedEventAttributes ?? {};
    await Worker.runReplayHistory({ workflowBundle }, history, workflowId);
  });

  test('a history that took other steps does not replay', async () => {
    const history = read('llm-call-0.1.0-settled-at-once.json');
    for (const event of history.events) {
      const scheduled = event.activityTaskScheduledEventAttributes;
      if (scheduled !== undefined) scheduled.activityType.name = 'sendTwice';
    }
    await expect(
      Worker.runReplayHistory({ workflowBundle }, history, 'replayed'),
    ).rejects.toThrow();
  });
});
