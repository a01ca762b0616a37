// What people and machines read: tables for people, one JSON value for machines, and the exit codes.

import { type Unit, formatAmount } from '../domain/money.js';

export const EXIT = { done: 0, refused: 1, misuse: 2, failed: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with its code and one sentence; never a stack trace. */
export class CommandEnd extends Error {
  readonly code: ExitCode;

  constructor(code: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Amounts become text: JSON numbers lose exactness above 2^53. */
export function printJson(value: unknown): void {
  print(
    JSON.stringify(value, (_, entry: unknown) =>
      typeof entry === 'bigint' ? entry.toString() : entry,
    ),
  );
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  for (const row of [head, ...rows]) {
    print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
  if (rows.length === 0) print('(none)');
}

/** `-` where there is none, `unknown` where nobody knows; never 0 for either. */
export function say(amount: bigint | null | undefined, unit: Unit, missing = '-'): string {
  return amount === null || amount === undefined ? missing : formatAmount(amount, unit);
}

export function sayAge(since: Date | null, now: Date = new Date()): string {
  if (since === null) return '-';
  const seconds = Math.max(0, Math.round((now.getTime() - since.getTime()) / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

/** Tells on stderr that something is still going on, once it has taken two seconds. */
export async function withProgress<T>(what: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => process.stderr.write(`${what} …\n`), 2_000);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
