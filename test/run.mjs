// Runs vitest with the arguments given, and ends stdout with one line that a program can read, whatever becomes of
// vitest: `tests: N passed, N failed, N skipped`. Exits with vitest's code.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** The counts come as a message and not on stdout, so that nothing vitest or a test prints can follow the last line. */
function runVitest(args) {
  return new Promise((resolve) => {
    let counts;
    const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    vitest.on('message', (message) => {
      if (message?.kind === 'test_summary') counts = message.counts;
    });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
      process.on(signal, () => vitest.kill(signal));
    vitest.once('error', (error) => {
      process.stderr.write(`vitest could not start: ${error.message}\n`);
      resolve({ code: 1, counts });
    });
    vitest.once('close', (code, signal) => {
      if (signal !== null) process.stderr.write(`vitest was ended by ${signal}\n`);
      resolve({ code: code ?? 1, counts });
    });
  });
}

const { code, counts } = await runVitest(process.argv.slice(2));
const { passed, failed, skipped } = counts ?? { passed: 0, failed: 1, skipped: 0 };
const isFailed = code !== 0 || failed > 0;
// A run that failed outside of every test, as when servers do not stop, must not read like one that passed.
const failedShown = isFailed && failed === 0 ? 1 : failed;
process.exitCode = isFailed ? code || 1 : 0;
process.stdout.write(`tests: ${passed} passed, ${failedShown} failed, ${skipped} skipped\n`);
