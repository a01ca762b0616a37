import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import ts from 'typescript';
import { expect } from 'vitest';
import { readStartToken } from '../../devstack/machine/process-identity.js';

const PROJECT = resolve(import.meta.dirname, '../..');

/** A folder that every account may enter, as a checkout usually is. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  chmodSync(folder, 0o755);
  return folder;
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

export function isAlive(pid: number | null): boolean {
  return pid !== null && readStartToken(pid) !== null;
}

export function ignoreProgress(): void {
  return undefined;
}

/** The folder `devstack/` as JavaScript below `folder`, for a process of its own that can be killed. */
export function compileDevstack(folder: string): string {
  const target = join(folder, 'compiled');
  for (const name of readdirSync(join(PROJECT, 'devstack'), {
    recursive: true,
    encoding: 'utf8',
  })) {
    if (!name.endsWith('.ts')) continue;
    const file = join(target, 'devstack', name.replace(/ts$/, 'js'));
    const source = readFileSync(join(PROJECT, 'devstack', name), 'utf8');
    const compilerOptions = {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
    };
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, ts.transpileModule(source, { compilerOptions }).outputText);
  }
  writeFileSync(join(target, 'package.json'), '{"type":"module"}');
  symlinkSync(join(PROJECT, 'node_modules'), join(target, 'node_modules'));
  return target;
}

/** Runs a module until it prints its first line, kills the process without warning and answers the line's JSON. */
export async function runUntilFirstLineAndKill(folder: string, source: string): Promise<unknown> {
  const file = join(folder, `starter-${readdirSync(folder).length}.mjs`);
  writeFileSync(file, source);
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, 'line'), closed])) as [unknown];
  child.kill('SIGKILL');
  await closed;
  expect(line).toBeTypeOf('string');
  return JSON.parse(String(line));
}
