// Verify
// ------
// The gate: every check of package.json, cheapest first, up to the first that fails.
//
// V1. What each step did is said on stderr. stdout carries the tests alone, and so ends with the line that counts them.
// V2. A step that fails shows all of its output, and then no line about tests is printed: none were run.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(fileURLToPath(import.meta.url));
const say = (sentence) => process.stderr.write(`verify: ${sentence}\n`);

/** Each runs the script of that name, so that the gate and a person at the keyboard do the same. */
const steps = [
  { name: 'types', script: 'check:types' },
  { name: 'lint', script: 'check:lint' },
  { name: 'format', script: 'check:format' },
  { name: 'layers', script: 'check:layers' },
  { name: 'dead code', script: 'check:dead' },
  { name: 'tests', script: 'test', isShown: true },
];

let running;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    running?.kill(signal);
    process.exitCode = 1;
  });
}

/** Answers the exit code of `npm run <script>`; what it prints is shown as it comes, or only when it fails. */
function runScript(script, { isShown = false }) {
  return new Promise((resolve) => {
    running = spawn('npm', ['run', '--silent', script], {
      cwd: root,
      shell: process.platform === 'win32',
      stdio: isShown ? ['ignore', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [running.stdout, running.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => (output += text));
    }
    running.once('error', (error) => resolve({ code: 1, output: error.message }));
    running.once('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

async function verify() {
  for (const { name, script, isShown } of steps) {
    const startedAt = Date.now();
    const { code, output } = await runScript(script, { isShown });
    const elapsed = `${((Date.now() - startedAt) / 1000).toFixed(1)} s`;
    if (code !== 0) {
      process.stderr.write(output);
      say(`${name} FAILED (${elapsed}), npm run ${script}`);
      return 1;
    }
    say(`${name} ok (${elapsed})`);
  }
  return process.exitCode ?? 0;
}

process.exitCode = await verify();
