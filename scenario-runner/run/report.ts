// What a run says of one file: one JSON object for programs, a few lines for people.

import type { Check } from '../play/check.js';
import type { TimelineLine } from '../judge/timeline.js';

export type Verdict = 'pass' | 'fail' | 'pending' | 'error';

export interface Report {
  readonly scenario: string;
  readonly file: string;
  readonly policy: 'holdfast' | 'naive';
  readonly verdict: Verdict;
  /** Why it is pending, or could not be played to its end. */
  readonly reason?: string;
  readonly checks: readonly Check[];
  readonly provider: { readonly received: number; readonly charged: string } | null;
  readonly budgets: Readonly<Record<string, Readonly<Record<string, string | null>>>>;
  readonly notes: readonly string[];
  readonly seconds: number;
  readonly firstOff?: Check;
  readonly timeline: readonly TimelineLine[];
}

export function toJson(report: Report): string {
  const { firstOff, timeline, notes, checks, ...rest } = report;
  const isOff = report.verdict === 'fail' || report.verdict === 'error';
  return JSON.stringify({
    ...rest,
    checks: checks.map(({ name, expected, actual, ok, source }) => ({
      ...{ name, expected, actual, ok, source },
    })),
    ...(notes.length > 0 && { notes }),
    ...(isOff && firstOff !== undefined && { firstOff }),
    ...(isOff && { timeline }),
  });
}

const SHOWN: Readonly<Record<Verdict, string>> = {
  pass: 'pass   ',
  fail: 'FAIL   ',
  pending: 'pending',
  error: 'ERROR  ',
};

export function toLines(report: Report): string[] {
  const charged = report.provider === null ? '' : `, charged ${report.provider.charged}`;
  const head = `${SHOWN[report.verdict]} ${report.scenario}  (${report.checks.length} figures, ${report.seconds} s${charged})`;
  const lines = [report.reason === undefined ? head : `${head}: ${report.reason}`];
  if (report.verdict === 'fail' || report.verdict === 'error') {
    const { firstOff } = report;
    if (firstOff !== undefined) {
      lines.push(
        `  ${report.file}:${firstOff.line}: ${firstOff.name}: expected ${firstOff.expected}, found ${firstOff.actual}  (${firstOff.source})`,
      );
    }
    const others = report.checks.filter(({ ok, name }) => !ok && name !== firstOff?.name);
    for (const off of others) {
      lines.push(`  also off: ${off.name}: expected ${off.expected}, found ${off.actual}`);
    }
    lines.push(...report.notes.map((note) => `  note: ${note}`));
    if (report.timeline.length > 0) lines.push('  what happened:');
    lines.push(
      ...report.timeline.map(({ at, who, what }) => `    ${at}  ${who.padEnd(8)}  ${what}`),
    );
  } else if (report.notes.length > 0) {
    lines.push(...report.notes.map((note) => `  note: ${note}`));
  }
  return lines;
}

export function summaryLine(reports: readonly Report[]): string {
  const count = (...verdicts: readonly Verdict[]): number =>
    reports.filter(({ verdict }) => verdicts.includes(verdict)).length;
  return `scenarios: ${count('pass')} passed, ${count('fail', 'error')} failed, ${count('pending')} pending`;
}
