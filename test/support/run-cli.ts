// The compiled `holdfast` as a process, as its users have it.

import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));

export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function runCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<CliRun> {
  return run([join(DIST, 'cli/main.js'), ...args], environment, cwd);
}

/** The compiled worker, for a start that fails. */
export function runWorker(
  environment: Readonly<Record<string, string>>,
  cwd?: string,
): Promise<CliRun> {
  return run([join(DIST, 'worker/main.js')], environment, cwd);
}

function run(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  cwd: string | undefined,
): Promise<CliRun> {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(DATABASE_|TEMPORAL_|HOLDFAST_)/.test(name)),
  );
  const child = spawn(process.execPath, args, {
    env: {
      ...clean,
      HOLDFAST_STATE_DIR: mkdtempSync(join(tmpdir(), 'holdfast-cli-')),
      ...environment,
    },
    ...(cwd !== undefined && { cwd }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve) => {
    child.once('close', (code) => {
      resolve({ code, stdout, stderr });
    });
  });
}
