// Values from the command line: refused with the flag, the value and what would be right.

import { ID_RULE, problemOfId } from '../domain/identity.js';
import { type Amount, isUnit, parseAmount, type Unit, UNITS } from '../domain/money.js';
import { CommandEnd, EXIT } from './output.js';

export function misuse(flag: string, message: string): CommandEnd {
  return new CommandEnd(EXIT.misuse, `${flag} ${message}`);
}

export function readId(flag: string, text: string): string {
  const problem = problemOfId(text);
  if (problem !== undefined) throw misuse(flag, `is ${problem}; give ${ID_RULE}`);
  return text;
}

export function readUnit(text: string): Unit {
  if (!isUnit(text)) throw misuse('--unit', `is "${text}"; give ${UNITS.join(' or ')}`);
  return text;
}

export function readAmount(flag: string, text: string, unit: Unit): Amount {
  try {
    return parseAmount(text, unit);
  } catch (error) {
    if (error instanceof RangeError) throw misuse(flag, `is wrong: ${error.message}`);
    throw error;
  }
}

const DURATION = /^(\d{1,6})(ms|s|m|h|d)$/;
const MS_PER = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `15m` in milliseconds. */
export function readDuration(flag: string, text: string): number {
  const [, amount, unit] = DURATION.exec(text) ?? [];
  if (amount === undefined || unit === undefined) {
    throw misuse(flag, `is "${text}"; give a duration such as 30s, 15m, 2h or 9d`);
  }
  return Number(amount) * MS_PER[unit as keyof typeof MS_PER];
}

export function readCount(flag: string, text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) {
    throw misuse(flag, `is "${text}"; give a whole number, 1 or more`);
  }
  return Number(text);
}
