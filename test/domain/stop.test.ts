import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CANCEL_STATES } from '../../domain/operation.js';
import { EXECUTION_STATUSES } from '../../domain/observation.js';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { describeCancel, reportStop } from '../../domain/stop.js';
import { explainOperation } from '../../domain/explain.js';

const OUTCOMES = [null, 'settled', 'released', 'refused', 'stopped'] as const;
const STATES = ['held', 'dispatched', 'unknown', 'settled', 'released'] as const;

const snapshots = fc
  .record({
    cancel: fc.constantFrom(...CANCEL_STATES),
    executionStatus: fc.constantFrom(...EXECUTION_STATUSES),
    outcome: fc.constantFrom(...OUTCOMES),
    state: fc.constantFrom(...STATES),
    heldAmount: fc.constantFrom('0', '20'),
    chargedAmount: fc.constantFrom(null, '0', '5'),
  })
  .map(
    ({ heldAmount, chargedAmount, ...rest }) =>
      ({
        ...rest,
        ...{
          operationId: 'op',
          accountId: 'acme',
          cancelSentCount: 1,
          cancelLastAnswer: 'http 202',
        },
        ...{ refusal: null, alerts: [] },
        attempts: [
          {
            ...{ attemptNo: 1, route: 'r', unit: 'credit', phase: 'in_flight', floorAmount: '0' },
            ...{ heldAmount, chargedAmount, questionCount: 1, reasons: [] },
          },
        ],
      }) as unknown as OperationSnapshot,
  );

/** Nothing was sent, or the provider's own status says so and the wish is confirmed by it. */
const isProved = ({ outcome, cancel, executionStatus }: OperationSnapshot): boolean =>
  outcome === 'stopped' || (cancel === 'confirmed_stopped' && executionStatus === 'cancelled');

describe('"stopped"', () => {
  test('is said of what is proved, and of nothing else, in any state there can be', () => {
    fc.assert(
      fc.property(snapshots, (snapshot) => {
        const report = reportStop(snapshot);
        expect(report.status === 'stopped').toBe(isProved(snapshot));
        expect(report.text.startsWith('stopped')).toBe(isProved(snapshot));
        const isSaid = (describeCancel(snapshot) ?? '').includes('it was stopped');
        if (isSaid) expect(isProved(snapshot)).toBe(true);
        const isExplained = explainOperation(snapshot).includes('it was stopped');
        expect(isExplained).toBe(isSaid);
      }),
      { numRuns: 2_000 },
    );
  });

  test('says what an open operation holds, and never 0 for what is not known', () => {
    fc.assert(
      fc.property(snapshots, (snapshot) => {
        const { text, chargedAmount } = reportStop(snapshot);
        if (chargedAmount === null && snapshot.outcome === null) {
          expect(text).toContain('charge unknown');
        }
        expect(text).not.toContain('charged 0 credit, holds 0');
      }),
    );
  });

  test('is printed by no other file: they would have no proof at hand', () => {
    const folders = [
      'activities',
      'cli',
      'client',
      'domain',
      'ledger',
      'providers',
      'worker',
      'workflows',
    ];
    const found = folders.flatMap(filesIn).flatMap((file) => {
      const lines = readFileSync(file, 'utf8').split('\n');
      return lines
        .filter(
          (line) => /['"`].*\bstopped\b.*['"`]/i.test(withoutComment(line)) && !isAllowed(line),
        )
        .map((line) => `${file}: ${line.trim()}`);
    });
    expect(found.filter((line) => !line.startsWith('domain/stop.ts'))).toEqual([]);
  });
});

/** What is not about remote work: names of values, and our own processes. */
const ALLOWED = [
  /'stopped'/, // The outcome, the status of a report, and their types: names, not sentences.
  /stopping|worker stopped|stopped process|stopped by a signal|servers that were given are never stopped/, // Our own processes.
];

const isAllowed = (line: string): boolean => ALLOWED.some((pattern) => pattern.test(line));
const withoutComment = (line: string): string => line.replace(/^\s*(\/\/|\*|--).*$/, '');

function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return filesIn(path);
    return /\.(ts|sql)$/.test(name) && name !== 'schema.sql' ? [path] : [];
  });
}
