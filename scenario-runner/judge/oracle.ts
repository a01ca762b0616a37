// The oracle
// ----------
// Judges a whole run from outside: the provider's truth against the raw journal, at every instant. It shares no
// code with what it judges, since a wrong rule that both used would never show.

import type { Journal, OracleTruth } from './facts.js';
import { findFalseDenials } from './false-deny.js';
import { compareInstants, type Comparison } from './false-free.js';
import { findUnknownWork } from './known-attempts.js';
import { listCorrections } from './provider-steps.js';

export interface OracleInput {
  /** Of this run only. */
  readonly truth: OracleTruth;
  readonly journal: Journal;
  /** What the file says was charged above stated bounds or corrected after a final. */
  readonly statedExcess: bigint;
}

export interface OracleCheck {
  readonly name: 'false_free' | 'false_deny' | 'known_attempts';
  readonly expected: string;
  readonly actual: string;
  readonly ok: boolean;
  readonly detail: readonly string[];
}

export interface OracleVerdict {
  readonly checks: readonly OracleCheck[];
  readonly instantCount: number;
  readonly excesses: readonly {
    readonly attemptKey: string;
    readonly amount: bigint;
    readonly why: 'above_bound' | 'corrected';
  }[];
}

export function judge(input: OracleInput): OracleVerdict {
  const { truth, journal } = input;
  const comparison = compareInstants(truth, journal);
  const excesses = [
    ...comparison.aboveBound.map((each) => ({ ...each, why: 'above_bound' as const })),
    ...listCorrections(truth).map((each) => ({ ...each, why: 'corrected' as const })),
  ];
  return {
    checks: [
      checkFalseFree(comparison, excesses, input.statedExcess),
      countCheck('false_deny', findFalseDenials(truth, journal)),
      countCheck('known_attempts', findUnknownWork(truth, journal)),
    ],
    instantCount: comparison.instantCount,
    excesses,
  };
}

function checkFalseFree(
  { instantCount, violations }: Comparison,
  excesses: OracleVerdict['excesses'],
  statedExcess: bigint,
): OracleCheck {
  const excess = excesses.reduce((sum, { amount }) => sum + amount, 0n);
  const isStated = excess === statedExcess;
  return {
    name: 'false_free',
    expected: `0, with an excess of ${statedExcess.toString()}`,
    actual: `${violations.length}, with an excess of ${excess.toString()}`,
    ok: violations.length === 0 && isStated && instantCount > 0,
    detail: [
      ...(instantCount === 0 ? ['not one instant was compared'] : []),
      ...(isStated ? [] : excesses.map(describeExcess)),
      ...violations,
    ],
  };
}

function describeExcess({ attemptKey, amount, why }: OracleVerdict['excesses'][number]): string {
  const cause = why === 'above_bound' ? 'charged above its bound' : 'corrected upwards';
  return `attempt ${attemptKey}: ${amount.toString()} ${cause}`;
}

function countCheck(name: OracleCheck['name'], detail: readonly string[]): OracleCheck {
  return {
    name,
    expected: '0',
    actual: String(detail.length),
    ok: detail.length === 0,
    detail,
  };
}
