// Process identity
// ----------------
// A process id alone proves nothing: it is given out again after its process has ended.
// 1. A process is known by its id and the moment it started, and both are compared.
// 2. Where the moment cannot be read, the process is not ours: nothing is ever signalled on a guess.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Which process this is, also after its id was given to another one. */
export interface ProcessIdentity {
  pid: number;
  startToken: string;
}

/** The moment a live process started, as an opaque text; null when it is gone or cannot be read. */
export function readStartToken(pid: number): string | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  return process.platform === 'linux' ? readLinuxStartToken(pid) : askPs(pid, 'lstart=');
}

/** The command line of a live process; null when it is gone or cannot be read. */
export function readCommandLine(pid: number): string | null {
  if (process.platform !== 'linux') return askPs(pid, 'command=');
  return readText(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ').trim() ?? null;
}

export function identifyProcess(pid: number): ProcessIdentity | null {
  const startToken = readStartToken(pid);
  return startToken === null ? null : { pid, startToken };
}

export function isSameProcessAlive(identity: ProcessIdentity): boolean {
  return readStartToken(identity.pid) === identity.startToken;
}

/** Answers whether the process was gone before the limit. */
async function waitUntilGone(identity: ProcessIdentity, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (isSameProcessAlive(identity)) {
    if (performance.now() > deadline) return false;
    await sleep(20);
  }
  return true;
}

/** Sends each signal in turn until the process is gone; answers whether it is. */
export async function endProcess(
  identity: ProcessIdentity,
  steps: readonly { signal: NodeJS.Signals; limitMs: number }[],
): Promise<boolean> {
  for (const { signal, limitMs } of steps) {
    if (!isSameProcessAlive(identity)) return true;
    signalProcess(identity.pid, signal);
    if (await waitUntilGone(identity, limitMs)) return true;
  }
  return !isSameProcessAlive(identity);
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It ended between the look and the signal.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

function readLinuxStartToken(pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The second field is the command in brackets and may hold spaces and brackets of its own.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  // A zombie has ended: only its parent has not looked yet.
  if (startTicks === undefined || state === 'Z' || state === 'X') return null;
  // Ticks count from boot, so the boot belongs to the moment.
  return `${readText('/proc/sys/kernel/random/boot_id')?.trim() ?? 'boot'}:${startTicks}`;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function askPs(pid: number, column: string): string | null {
  try {
    const answer = execFileSync('ps', ['-o', column, '-p', String(pid)], {
      encoding: 'utf8',
      env: { PATH: '/bin:/usr/bin', LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return answer === '' ? null : answer;
  } catch {
    return null;
  }
}
