import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import ts from 'typescript';
import { expect } from 'vitest';
import {
  endProcess,
  identifyProcess,
  readStartToken,
} from '../../devstack/machine/process-identity.js';
import type { ProcessIdentity } from '../../devstack/machine/process-identity.js';

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

const leftServers: ProcessIdentity[] = [];

/** Runs a module until it prints its server as JSON, and kills the process without warning. */
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
  const printed: unknown = JSON.parse(String(line));
  const identity = identifyProcess(Number((printed as { pid: unknown }).pid));
  if (identity !== null) leftServers.push(identity);
  return printed;
}

/** What killed starters left and no test's subject has stopped, as when the test failed. */
export async function endLeftServers(): Promise<void> {
  for (const server of leftServers.splice(0)) {
    await endProcess(server, [{ signal: 'SIGQUIT', limitMs: 10_000 }]);
  }
}
