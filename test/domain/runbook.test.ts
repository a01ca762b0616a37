import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ALERT_KINDS } from '../../domain/alert.js';

const runbook = readFileSync('docs/runbook.md', 'utf8');
const sections = new Map(
  runbook
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section] as const),
);

/** `stuck_hold` → `Stuck hold`. */
const titleOf = (kind: string): string =>
  `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`.replaceAll('_', ' ');

describe('docs/runbook.md', () => {
  test.each(ALERT_KINDS)(
    'has a section for %s: where to look, what is safe, what not to do',
    (kind) => {
      const section = sections.get(titleOf(kind)) ?? '';
      for (const word of ['- Look:', '- Safe:', '- Not:']) expect(section).toContain(word);
    },
  );

  test('has no section for an alert that nobody raises, but those of metrics', () => {
    const ofMetrics = ['Ledger drift', 'Unknown exposure'];
    const known = [...ALERT_KINDS.map(titleOf), ...ofMetrics];
    expect([...sections.keys()].sort()).toEqual(known.sort());
  });

  test('names no command that there is not', () => {
    const commands = [...runbook.matchAll(/npx holdfast ([a-z-]+(?: [a-z]+)?)/g)].map(
      ([, words]) => words,
    );
    const source = ['ops', 'ops-acts', 'budget', 'set-up', 'set-up-temporal', 'sweep', 'doctor']
      .map((name) => readFileSync(`cli/commands/${name}.ts`, 'utf8'))
      .join('\n');
    for (const words of commands) {
      for (const word of words?.split(' ') ?? []) {
        expect(source, words).toMatch(new RegExp(`(command\\(|\\? |: )'${word}\\b`));
      }
    }
  });
});
