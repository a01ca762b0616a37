// The table of README that puts what a gateway did, by the published record, beside what Holdfast does:
// our columns come from the reports of a run.

import { basename } from 'node:path';
import type { Scenario } from '../../scenario-runner/language/scenario.js';
import type { Report } from '../../scenario-runner/run/report.js';

const BEGIN = '<!-- the table: UPDATE_README=1 npm run test:scenario -->';
const END = '<!-- end of the table -->';

/** The table that stands in a text, with its markers. */
export function tableIn(text: string): string {
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from < 0 || to < from) throw new Error('README has lost the markers of its table');
  return text.slice(from, to + END.length);
}

export function tableOf(
  scenarios: readonly Scenario[],
  reports: ReadonlyMap<string, Report>,
): string {
  const rows = scenarios.map((scenario) => {
    const report = reports.get(scenario.name);
    const provider = report?.provider;
    const limit = Object.values(report?.budgets ?? {})[0]?.['limit'] ?? '-';
    const charged = provider == null ? 'not played' : provider.charged;
    const verdict = report?.verdict === 'pass' ? 'kept' : 'FAILED';
    return `| [${scenario.name}](scenarios/hb/${basename(scenario.file)}) | ${scenario.about} | ${scenario.gateway ?? ''} | ${charged} of ${limit} | ${verdict} |`;
  });
  return [
    BEGIN,
    '',
    '| scenario | story | gateway charged | Holdfast charged | cap and figures |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    END,
  ].join('\n');
}
