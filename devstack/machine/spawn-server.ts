import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { messageOf } from '../devstack-error.js';
import { identifyProcess } from './process-identity.js';
import type { ProcessIdentity } from './process-identity.js';

export interface ServerCommand {
  command: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd: string;
  logFile: string;
  account?: { uid: number; gid: number } | null;
}

export type SpawnedServer =
  | { status: 'spawned'; identity: ProcessIdentity; hasExited: () => boolean }
  | { status: 'not_spawned'; reason: string };

/**
 * In a process group of its own: Ctrl-C in the terminal reaches us and not the server, so that what uses the server
 * can be stopped before it. Its output goes to a file, because a pipe would break when we are killed.
 */
export async function spawnServer(request: ServerCommand): Promise<SpawnedServer> {
  const log = openSync(request.logFile, 'a', 0o600);
  try {
    const child = spawn(request.command, request.args, {
      detached: true,
      stdio: ['ignore', log, log],
      env: request.env,
      cwd: request.cwd,
      ...(request.account != null && { uid: request.account.uid, gid: request.account.gid }),
    });
    let exited = false;
    child.once('exit', () => {
      exited = true;
    });
    const failure = await new Promise<string | null>((resolve) => {
      child.once('spawn', () => {
        resolve(null);
      });
      child.once('error', (error) => {
        resolve(messageOf(error));
      });
    });
    child.unref();
    if (failure !== null || child.pid === undefined) {
      return { status: 'not_spawned', reason: failure ?? 'no process id' };
    }
    const identity = identifyProcess(child.pid) ?? { pid: child.pid, startToken: 'ended' };
    return { status: 'spawned', identity, hasExited: () => exited };
  } finally {
    closeSync(log);
  }
}
