// The `holdfast` command: one file a subject under commands/. Exit codes: 0 done, 1 refused,
// 2 misuse, 3 failed.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { HoldfastError } from '../domain/failure.js';
import { CHECKOUT_DIR } from './context.js';
import { CommandEnd, EXIT } from './output.js';

const { version } = JSON.parse(readFileSync(join(CHECKOUT_DIR, 'package.json'), 'utf8')) as {
  version: string;
};

const program = new Command('holdfast')
  .version(version, '--version', 'print the version')
  .description('Caps what programs and agents can spend, also when calls time out or workers die.')
  .exitOverride()
  .showHelpAfterError('(add --help for help)');

type Register = (program: Command) => void;

const budgets = async (): Promise<Register[]> => {
  const commands = await import('./commands/budget.js');
  return [commands.registerBudget, commands.registerAccount, commands.registerPrice];
};
const stack = async (): Promise<Register[]> => [
  (await import('./commands/stack.js')).registerStack,
];
const setUp = async (): Promise<Register[]> => [
  (await import('./commands/set-up.js')).registerSetUp,
];

/** Each command loads what it needs, and the first word says which it is: most need little. */
const COMMANDS: Readonly<Record<string, () => Promise<Register[]>>> = {
  start: async () => [(await import('./commands/start.js')).registerStart],
  status: stack,
  stop: stack,
  reset: stack,
  temporal: stack,
  doctor: async () => [(await import('./commands/doctor.js')).registerDoctor],
  setup: setUp,
  db: setUp,
  config: setUp,
  budget: budgets,
  account: budgets,
  price: budgets,
  sweep: async () => [(await import('./commands/sweep.js')).registerSweep],
  task: async () => [(await import('./commands/task.js')).registerTask],
  'ui-links': async () => [(await import('./commands/set-up-temporal.js')).registerUiLinks],
  ops: async () => [(await import('./commands/ops.js')).registerOps],
  call: async () => [(await import('./commands/call.js')).registerCall],
  scenario: async () => [(await import('./commands/scenario.js')).registerScenario],
};

const word = process.argv[2] ?? '';
const wanted = Object.hasOwn(COMMANDS, word) ? [COMMANDS[word]] : new Set(Object.values(COMMANDS));
for (const load of wanted) for (const register of (await load?.()) ?? []) register(program);
inheritExit(program);

/** Sub-commands throw too, so that every end goes through one place. */
function inheritExit(command: Command): void {
  for (const child of command.commands) {
    child.exitOverride().showHelpAfterError('(add --help for help)');
    inheritExit(child);
  }
}

function codeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.misuse;
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`holdfast: ${message}\n`);
  if (error instanceof CommandEnd) return error.code;
  if (error instanceof HoldfastError && error.code === 'INVALID_CONFIGURATION') return EXIT.misuse;
  return EXIT.failed;
}

// Whoever reads us may stop early, as `head` does.
process.stdout.on('error', () => process.exit(EXIT.done));

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = codeOf(error);
}
// Node 20 can spin for ever in its own clean-up of handles when a process that had children ends by
// itself (seen in CleanupHandles, about once in five runs): everything of ours is closed by now.
process.stdout.write('', () => process.exit());
