import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { DevstackError, messageOf } from './devstack-error.js';
import { tailOf } from './machine/run-command.js';
import { parseFields } from './machine/state-file.js';

export interface SpawnProcessOptions {
  /** What messages call it. */
  name: string;
  command: string;
  args: readonly string[];
  /** The whole environment, not an addition. */
  env: NodeJS.ProcessEnv;
  cwd: string;
  /** Where its output is appended; without one only its tail is kept, for messages. */
  logFile?: string | undefined;
  readyLimitMs?: number | undefined;
  onLine?: ((line: string) => void) | undefined;
}

export interface ProcessExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface SpawnedProcess {
  pid: number;
  /** The line it announced itself by: a JSON object with the key `ready`. */
  ready: Readonly<Record<string, unknown>>;
  exited: Promise<ProcessExit>;
  /** One line to its stdin. */
  write: (line: string) => void;
  /** Resolves with the next line that announces something, as the first one did. */
  nextReady: () => Promise<Readonly<Record<string, unknown>>>;
  /** The last lines it printed. */
  tail: () => string;
  /** Sends the signal and waits; ends it by SIGKILL when the limit passes. */
  stop: (signal?: NodeJS.Signals, limitMs?: number) => Promise<ProcessExit>;
}

const READY_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 20_000;
const TAIL_LENGTH_MAX = 16 * 1024;

/**
 * Starts a child and waits until it prints a line that is a JSON object with the key `ready`. The child is in a process
 * group of its own, so that Ctrl-C leaves the order of stopping to us; it is ended when it announces nothing in time.
 * Its stdin is a pipe that breaks when we die: a child that must not outlive us ends itself at the end of its stdin.
 */
export async function spawnProcess(options: SpawnProcessOptions): Promise<SpawnedProcess> {
  const child = spawn(options.command, options.args, {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: options.env,
    cwd: options.cwd,
  });
  // A child that is gone takes no input; its exit says so.
  child.stdin.on('error', () => undefined);
  const output = watchOutput(child, options);
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('close', (code, signal) => {
      resolve({ code, signal });
    });
  });
  const ready = await waitUntilReady({ child, options, output, exited });
  if (child.pid === undefined) throw new DevstackError('PROCESS_NOT_READY', 'no process id');
  return {
    pid: child.pid,
    ready,
    exited,
    write: (line) => {
      child.stdin.write(`${line}\n`);
    },
    nextReady: () =>
      Promise.race([
        output.nextReady(),
        exited.then(() => {
          throw new DevstackError('PROCESS_NOT_READY', `${options.name} ended\n${output.tail()}`);
        }),
      ]),
    tail: output.tail,
    stop: (signal = 'SIGTERM', limitMs = STOP_LIMIT_MS) =>
      stopChild(child, exited, { signal, limitMs }),
  };
}

interface Output {
  ready: Promise<Record<string, unknown>>;
  nextReady: () => Promise<Record<string, unknown>>;
  tail: () => string;
}

function watchOutput(child: ChildProcess, options: SpawnProcessOptions): Output {
  let kept = '';
  const log =
    options.logFile === undefined ? null : createWriteStream(options.logFile, { flags: 'a' });
  let logFailure: unknown = null;
  log?.on('error', (error) => {
    logFailure = error;
  });
  const keep = (line: string): void => {
    kept = `${kept}${line}\n`.slice(-TAIL_LENGTH_MAX);
    if (log !== null && logFailure === null) log.write(`${line}\n`);
    options.onLine?.(line);
  };
  const waiting: ((fields: Record<string, unknown>) => void)[] = [];
  const nextReady = (): Promise<Record<string, unknown>> =>
    new Promise((resolve) => {
      waiting.push(resolve);
    });
  const ready = nextReady();
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      keep(line);
      const fields = line.startsWith('{') ? parseFields(line) : null;
      if (fields !== null && 'ready' in fields) {
        for (const resolve of waiting.splice(0)) resolve(fields);
      }
    });
  }
  if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', keep);
  child.once('close', () => log?.end());
  return {
    ready,
    nextReady,
    tail: () => {
      const note = logFailure === null ? '' : `\n(its log: ${messageOf(logFailure)})`;
      return tailOf(kept, 30) + note;
    },
  };
}

interface Waiting {
  child: ChildProcess;
  options: SpawnProcessOptions;
  output: Output;
  exited: Promise<ProcessExit>;
}

async function waitUntilReady(waiting: Waiting): Promise<Record<string, unknown>> {
  const { child, options, output, exited } = waiting;
  const limitMs = options.readyLimitMs ?? READY_LIMIT_MS;
  const giveUp = (reason: string): DevstackError =>
    new DevstackError('PROCESS_NOT_READY', `${options.name} ${reason}\n${output.tail()}`.trim());
  let timer: NodeJS.Timeout | undefined;
  const troubles = new Promise<never>((_resolve, reject) => {
    child.once('error', (error) => {
      reject(giveUp(`could not be started: ${messageOf(error)}`));
    });
    timer = setTimeout(() => {
      reject(giveUp(`was not ready after ${limitMs} ms`));
    }, limitMs);
    void exited.then(({ code, signal }) => {
      reject(giveUp(`ended before it was ready (${signal ?? `exit code ${String(code)}`})`));
    });
  });
  try {
    return await Promise.race([output.ready, troubles]);
  } catch (error) {
    if (child.pid !== undefined) await stopChild(child, exited, { signal: 'SIGKILL', limitMs });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function stopChild(
  child: ChildProcess,
  exited: Promise<ProcessExit>,
  { signal, limitMs }: { signal: NodeJS.Signals; limitMs: number },
): Promise<ProcessExit> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  const timer = setTimeout(() => {
    child.kill('SIGKILL');
  }, limitMs);
  try {
    return await exited;
  } finally {
    clearTimeout(timer);
  }
}
