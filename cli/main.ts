import { Command } from 'commander';
import { registerStart } from './commands/start.js';

const program = new Command('holdfast');
registerStart(program);
await program.parseAsync();
