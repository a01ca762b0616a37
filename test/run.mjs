// Runs vitest with the arguments given, and ends stdout with one line that a program can read, whatever becomes of
// vitest: `tests: N passed, N failed, N skipped`. Exits with vitest's code.
//
// R1. Without arguments everything runs, the tests of the Temporal UI last and on servers of their own: a list of the UI
//     shows whatever other tests have left in its namespace.
// R2. Without a browser, or where a Temporal server is given, those are one skipped test, and why is said on stderr.
//     Asked for by name where CI is set, they fail instead.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findBrowser } from './support/find-browser.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const NOTHING = { passed: 0, failed: 0, skipped: 0 };
const browser = findBrowser(process.env);
/** Undefined where the tests of the UI can run. */
const uiProblem = whyNoUi();

/** The counts come as a message and not on stdout, so that nothing vitest or a test prints can follow the last line. */
function runVitest(args, chromePath) {
  return new Promise((resolve) => {
    let counts;
    const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
      cwd: root,
      // The tests of the UI are there for vitest where this names a browser.
      env: { ...process.env, CHROME_PATH: chromePath },
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

/** A run that failed outside of every test, as when servers do not stop, must not read like one that passed. */
async function run(args, chromePath = '') {
  const { code, counts } = await runVitest(args, chromePath);
  const { passed, failed, skipped } = counts ?? { passed: 0, failed: 1, skipped: 0 };
  const isFailed = code !== 0 || failed > 0;
  return {
    code: isFailed ? code || 1 : 0,
    counts: { passed, failed: isFailed ? Math.max(failed, 1) : failed, skipped },
  };
}

function whyNoUi() {
  if (browser.kind === 'missing') return `need Chromium or Chrome: ${browser.why}`;
  if ((process.env.TEMPORAL_ADDRESS ?? '') === '') return undefined;
  return 'need a Temporal server of their own, and TEMPORAL_ADDRESS names one';
}

function runUi(args, { mustRun }) {
  if (uiProblem === undefined) return run(args, browser.file);
  process.stderr.write(
    `The tests of the Temporal UI ${uiProblem}. They are ${mustRun ? 'missing' : 'skipped'}.\n`,
  );
  return mustRun
    ? { code: 1, counts: { ...NOTHING, failed: 1 } }
    : { code: 0, counts: { ...NOTHING, skipped: 1 } };
}

/** By the name of the tier, or by that of a file. */
function isForUi(args) {
  return args.some(
    (arg, index) =>
      arg === '--project=ui' ||
      (arg === 'ui' && args[index - 1] === '--project') ||
      arg.startsWith('test/ui'),
  );
}

/** One run after the other; the servers of one are gone when the next begins. */
async function runAll(args) {
  if (isForUi(args)) return [await runUi(args, { mustRun: (process.env.CI ?? '') !== '' })];
  const others = await run(args);
  if (args.length > 0 || others.code !== 0) return [others];
  return [others, await runUi(['--project', 'ui'], { mustRun: false })];
}

const runs = await runAll(process.argv.slice(2));
const sum = (key) => runs.reduce((total, { counts }) => total + counts[key], 0);
process.exitCode = runs.find(({ code }) => code !== 0)?.code ?? 0;
process.stdout.write(
  `tests: ${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`,
);
