// Summary reporter
// ----------------
// Counts what ran, over all tiers, and says it in one line: `tests: N passed, N failed, N skipped`.
//
// S1. Nothing that went wrong is left out: a file that does not load, a hook that fails, an error outside of any test,
//     a name that two tests of a file share and a test that never ran count as one failure each.
// S2. A run in which no test ran does not pass, unless vitest's own `--passWithNoTests` allows it.

import type { Reporter, TestCase, TestModule, TestRunEndReason, Vitest } from 'vitest/node';

interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

/** What a parent process is told instead of a line on stdout, so that the line can be the very last one. */
interface SummaryMessage {
  kind: 'test_summary';
  counts: TestCounts;
}

/** The names that more than one test of the file has. */
function listSharedNames(module: TestModule): string[] {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const { fullName } of module.children.allTests()) {
    if (seen.has(fullName)) shared.add(fullName);
    seen.add(fullName);
  }
  return [...shared];
}

/** Errors of the file itself and of the hooks in it, which belong to no test. */
function countErrorsOutsideTests(module: TestModule): number {
  const suites = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0);
  return suites.length + (module.errors().length > 0 ? 1 : 0);
}

function countOne(test: TestCase, counts: TestCounts): void {
  const { state } = test.result();
  switch (state) {
    case 'passed':
      counts.passed += 1;
      return;
    case 'skipped':
      counts.skipped += 1;
      return;
    case 'failed':
    case 'pending':
      counts.failed += 1;
      return;
  }
}

// eslint-disable-next-line no-restricted-syntax -- vitest loads a reporter by its default export
export default class SummaryReporter implements Reporter {
  #isEmptyAllowed = false;

  onInit(vitest: Vitest): void {
    this.#isEmptyAllowed = vitest.config.passWithNoTests;
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    unhandledErrors: readonly unknown[],
    reason: TestRunEndReason,
  ): void {
    const counts: TestCounts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      counts.failed += countErrorsOutsideTests(module);
      for (const name of listSharedNames(module)) {
        counts.failed += 1;
        process.stderr.write(`${module.relativeModuleId}: two tests are called "${name}"\n`);
      }
      for (const test of module.children.allTests()) countOne(test, counts);
    }
    const isEmpty = counts.passed + counts.failed === 0;
    if (isEmpty && !this.#isEmptyAllowed) process.stderr.write('No test ran.\n');
    if (counts.failed > 0 || reason !== 'passed' || (isEmpty && !this.#isEmptyAllowed)) {
      process.exitCode = 1;
    }
    this.#report(counts);
  }

  #report(counts: TestCounts): void {
    if (process.send === undefined) {
      const { passed, failed, skipped } = counts;
      // After the other reporters, which print at this same moment.
      process.once('exit', () => {
        process.stdout.write(`tests: ${passed} passed, ${failed} failed, ${skipped} skipped\n`);
      });
      return;
    }
    process.send({ kind: 'test_summary', counts } satisfies SummaryMessage);
  }
}
