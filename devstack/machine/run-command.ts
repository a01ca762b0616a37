import { spawn } from 'node:child_process';
import { messageOf } from '../devstack-error.js';

export interface CommandRequest {
  command: string;
  args: readonly string[];
  limitMs: number;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Whom to run it as; only root may say. */
  account?: { uid: number; gid: number } | null;
}

export interface CommandResult {
  /** Null when it could not be started, was ended by a signal or passed its limit. */
  exitCode: number | null;
  stdout: string;
  /** Both streams as they came, for messages. */
  output: string;
}

const OUTPUT_LENGTH_MAX = 64 * 1024;

/** Never rejects: a program that is not there is an answer like any other. */
export function runCommand(request: CommandRequest): Promise<CommandResult> {
  return new Promise((resolve) => {
    let stdout = '';
    let output = '';
    const child = spawn(request.command, request.args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: request.limitMs,
      killSignal: 'SIGKILL',
      ...(request.cwd !== undefined && { cwd: request.cwd }),
      ...(request.env !== undefined && { env: request.env }),
      ...(request.account != null && { uid: request.account.uid, gid: request.account.gid }),
    });
    const keep = (chunk: string): void => {
      output = (output + chunk).slice(-OUTPUT_LENGTH_MAX);
    };
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout = (stdout + chunk).slice(-OUTPUT_LENGTH_MAX);
      keep(chunk);
    });
    child.stderr.setEncoding('utf8').on('data', keep);
    child.once('error', (error) => {
      resolve({ exitCode: null, stdout, output: messageOf(error) });
    });
    child.once('close', (exitCode, signal) => {
      if (signal !== null) keep(`\n(ended by ${signal}; the limit was ${request.limitMs} ms)`);
      resolve({ exitCode, stdout, output });
    });
  });
}

/** The last lines of an output, for a message. */
export function tailOf(text: string, lineCount = 15): string {
  return text.trim().split('\n').slice(-lineCount).join('\n');
}
