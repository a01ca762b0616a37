// What the report of a task says, compared with what a file expects.

import type { TaskReport } from '../../domain/task-report.js';
import type { TaskFigures } from '../language/expect.js';
import { toAmount } from '../play/numbers.js';
import { check, type Play } from '../play/play.js';

const REPORT = 'the report of the task';

export async function compareTask(
  play: Play,
  told: { readonly name: string; readonly figures: TaskFigures; readonly line: number },
): Promise<void> {
  const { name, figures, line } = told;
  const task = play.tasks.get(name);
  if (task === undefined) throw new RangeError(`no step starts the task "${name}"`);
  const report = await task.handle.report();
  const say = (figure: string, expected: string, actual: string): void => {
    check(play, { name: `task ${name} ${figure}`, expected, actual, source: REPORT, line });
  };
  compareSteps(play, { figures, report, say });
  if (figures.temporal !== undefined) {
    const { status } = await play.stage.temporal.workflow
      .getHandle(task.handle.workflowId)
      .describe();
    say('temporal', figures.temporal, status.name);
  }
}

type Say = (figure: string, expected: string, actual: string) => void;

function compareSteps(
  play: Play,
  told: { readonly figures: TaskFigures; readonly report: TaskReport; readonly say: Say },
): void {
  const { figures, report, say } = told;
  if (figures.status !== undefined) say('status', figures.status, report.status);
  for (const [id, wanted] of Object.entries(figures.steps ?? {})) {
    say(`step ${id}`, wanted, stepOf(report, id)?.status ?? 'no such step');
  }
  for (const [id, wanted] of Object.entries(figures.stops ?? {})) {
    say(`stop ${id}`, wanted, stepOf(report, id)?.stop ?? 'none');
  }
  for (const [id, wanted] of Object.entries(figures.charged ?? {})) {
    const expected =
      wanted === 'unknown' ? wanted : String(toAmount(wanted, 'credit', play.scenario.numbers));
    say(`charged ${id}`, expected, stepOf(report, id)?.chargedAmount ?? 'unknown');
  }
}

function stepOf({ steps }: TaskReport, id: string): TaskReport['steps'][number] | undefined {
  return steps.find((step) => step.id === id);
}
