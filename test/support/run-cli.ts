// The compiled `holdfast` as a process, as its users have it.

import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function runCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CliRun> {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(DATABASE_|TEMPORAL_|HOLDFAST_)/.test(name)),
  );
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: {
      ...clean,
      HOLDFAST_STATE_DIR: mkdtempSync(join(tmpdir(), 'holdfast-cli-')),
      ...environment,
    },
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
