// The `holdfast` command: one file a subject under commands/. Exit codes: 0 done, 1 refused,
// 2 misuse, 3 failed.

import { Command, CommanderError } from 'commander';
import { HoldfastError } from '../domain/failure.js';
import { registerAccount, registerBudget, registerPrice } from './commands/budget.js';
import { registerCall } from './commands/call.js';
import { registerDoctor } from './commands/doctor.js';
import { registerOps } from './commands/ops.js';
import { registerSetUp } from './commands/set-up.js';
import { registerStack } from './commands/stack.js';
import { registerStart } from './commands/start.js';
import { CommandEnd, EXIT } from './output.js';

const program = new Command('holdfast')
  .description('Caps what programs and agents can spend, also when calls time out or workers die.')
  .exitOverride()
  .showHelpAfterError('(add --help for help)');

for (const register of [
  registerStart,
  registerStack,
  registerDoctor,
  registerSetUp,
  registerBudget,
  registerAccount,
  registerPrice,
  registerOps,
  registerCall,
]) {
  register(program);
}
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
