import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { Command } from 'commander';
import { createHoldfastClient } from '../../client/holdfast-client.js';
import type { TaskHandle } from '../../client/task-handle.js';
import { describeProblems, isRecord } from '../../domain/input-fields.js';
import type { Unit } from '../../domain/money.js';
import type { AgentTaskInput } from '../../domain/task-input.js';
import type { TaskReport } from '../../domain/task-report.js';
import { currentConfig, withTemporal } from '../context.js';
import { CommandEnd, EXIT, print, printJson, printTable, say, withProgress } from '../output.js';
import { misuse, readDuration, readId } from '../read-flags.js';

interface TaskFlags {
  readonly id?: string;
  readonly wait?: string;
  readonly reason?: string;
  readonly by?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

const PLAN = `{"accountId": "acme", "budget": {"unit": "credit", "limit": "60"},
   "steps": [{"id": "draft", "call": {"route": "fake-priced", "maxTokens": 40,
                                      "request": {"messages": [{"role": "user", "content": "Draft."}]}}},
             {"id": "render", "after": ["draft"], "job": {"route": "fake-job", "bound": {"ticks": 20}, "request": {}}}]}`;

export function registerTask(program: Command): void {
  const task = program.command('task').description('agent tasks: plans of calls and jobs');
  task
    .command('start <plan>')
    .description('start a plan from a JSON file, or from - for the standard input')
    .option('--id <id>', 'the id of the task; a new one when left out')
    .option('--wait <duration>', 'wait so long for the answers of all steps')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `\nExample:\n  npx holdfast task start plan.json --id report-7\n\nA plan:\n  ${PLAN}`,
    )
    .action(start);
  task
    .command('show <id>')
    .description('where each step stands, with its amounts')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast task show report-7')
    .action((id: string, flags: TaskFlags) =>
      withTask(id, async (handle) => {
        tell(await handle.report(), flags);
      }),
    );
  task
    .command('cancel <id>')
    .description('ask every step to stop; asking is not stopping')
    .requiredOption('--reason <text>', 'why; it is stored with the wish')
    .option('--by <name>', 'who; your user name when left out')
    .option('--dry-run', 'tell what would be asked to stop, and do nothing')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast task cancel report-7 --reason "wrong plan"')
    .action((id: string, flags: TaskFlags) =>
      withTask(id, async (handle) => {
        const before = await withProgress('asking where it stands', handle.report());
        tellOpen(before, flags.dryRun === true);
        if (flags.dryRun === true) {
          tell(before, flags);
          return;
        }
        await handle.cancel({
          by: readId('--by', flags.by ?? userInfo().username),
          reason: readId('--reason', flags.reason ?? ''),
          requestId: randomUUID(),
        });
        tell(await withProgress('waiting for the first answers', handle.report()), flags);
      }),
    );
}

async function start(path: string, flags: TaskFlags): Promise<void> {
  const plan = readPlan(path);
  const taskId = readId(
    '--id',
    flags.id ?? textOf(plan['taskId']) ?? `task-${randomUUID().slice(0, 8)}`,
  );
  const waitMs = flags.wait === undefined ? undefined : readDuration('--wait', flags.wait);
  await withTask(
    taskId,
    async (handle) => {
      const started = await handle.start();
      if (started.status === 'invalid') {
        throw new CommandEnd(EXIT.misuse, `${path}: ${describeProblems(started.problems)}`);
      }
      if (started.status === 'exists') {
        throw new CommandEnd(
          EXIT.refused,
          `task "${taskId}" was started before; see: npx holdfast task show ${taskId}`,
        );
      }
      const answered =
        waitMs === undefined
          ? undefined
          : await withProgress('waiting for the answers', handle.awaitAnswer(waitMs));
      if (answered !== undefined) tell(answered, flags);
      else if (flags.json === true)
        printJson({ taskId, workflowId: handle.workflowId, status: 'started' });
      else print(`started task ${taskId}; see: npx holdfast task show ${taskId}`);
    },
    plan,
  );
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function readPlan(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw misuse(
      '<plan>',
      `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  let plan: unknown;
  try {
    plan = JSON.parse(text);
  } catch (error) {
    throw misuse(
      '<plan>',
      `${path} is no JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (!isRecord(plan))
    throw misuse('<plan>', `${path} is no object; see: npx holdfast task start --help`);
  return plan;
}

async function withTask(
  id: string,
  work: (handle: TaskHandle) => Promise<void>,
  plan: Record<string, unknown> = {},
): Promise<void> {
  const taskId = readId('<id>', id);
  await withTemporal(async (client) => {
    const { taskQueue } = currentConfig().temporal;
    // The plan is checked by the handle itself: whatever it is, its problems are told.
    const input = { ...plan, taskId } as unknown as AgentTaskInput & { readonly taskId: string };
    try {
      await work(createHoldfastClient({ client, taskQueue }).task(input));
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      throw new CommandEnd(
        EXIT.refused,
        `task "${taskId}" is unknown, or ended and forgotten by Temporal; its operations: npx holdfast ops list --task ${taskId}`,
      );
    }
  });
}

/** What a wish to stop would reach: told before it is made. */
function tellOpen({ steps }: TaskReport, isDryRun: boolean): void {
  const open = steps.filter(({ status }) => status === 'started' || status === 'answered');
  const waiting = steps.filter(({ status }) => status === 'waiting').length;
  const sums = new Map<Unit, bigint>();
  for (const { unit, heldAmount } of open) {
    if (unit !== null) sums.set(unit, (sums.get(unit) ?? 0n) + BigInt(heldAmount ?? '0'));
  }
  const held = [...sums].map(([unit, sum]) => say(sum, unit)).join(' and ') || 'nothing';
  process.stderr.write(
    `${isDryRun ? 'would cancel' : 'cancel'}: ${open.length} of ${steps.length} steps, holding ${held}; ${waiting} more will never start\n`,
  );
}

function tell(report: TaskReport, flags: TaskFlags): void {
  if (flags.json === true) {
    printJson(report);
    return;
  }
  print(
    `task ${report.taskId}: ${report.status}${report.isStopWanted ? ', a stop is wanted' : ''}`,
  );
  if (report.problem !== null) print(report.problem);
  printTable(
    ['step', 'status', 'what is known'],
    report.steps.map(({ id, status, text }) => [id, status, text]),
  );
}
