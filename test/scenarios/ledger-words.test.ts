import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readScenario } from '../../scenario-runner/language/read-scenario.js';
import { CANCEL_STATES } from '../../domain/operation.js';
import { EVENT_KINDS } from '../../scenario-runner/language/ledger-words.js';

test('a file can expect every kind of event that the ledger writes, and no other', () => {
  const folder = 'ledger/migrations';
  const sql = readdirSync(folder).map((file) => readFileSync(`${folder}/${file}`, 'utf8'));
  const written = sql.flatMap((text) =>
    [...text.matchAll(/ledger\.advance\(\s*[^,]+,\s*'([a-z_]+)'/g)].map(([, kind]) => kind),
  );
  // A hold that is kept writes the phase that is known, and a wish to stop what became of it: the two
  // places that pass a variable.
  const kept = ['in_flight', 'unknown'];
  const wishes = CANCEL_STATES.filter((state) => state !== 'none' && state !== 'requested');
  const ofWishes = [...wishes, 'unanswered'].map((what) => `cancel_${what}`);
  const whole = written.filter((kind) => kind !== 'cancel_');
  expect([...new Set([...whole, ...kept, ...ofWishes])].sort()).toEqual([...EVENT_KINDS].sort());
});

test.each([
  ['calls: { a: { events: { duplcate: 0 } } }', 'duplcate', 'duplicate'],
  ['calls: { a: { phases: [chargd] } }', 'chargd', 'charged'],
  ['calls: { a: { reasons: [no_anser] } }', 'no_anser', 'no_answer'],
  ['refused: { exceed_available: 1 }', 'exceed_available', 'exceeds_available'],
  ['outcomes: { setled: 1 }', 'setled', 'settled'],
])(
  'a misspelt word of the ledger would compare nothing, and is refused: %s',
  (text, wrong, right) => {
    const file = `scenario: misspelt
about: A word that is nobody's.
given: { budgets: { purse: { limit: 10 } } }
steps:
  - { call: a }
expect: { ${text} }
`;
    expect(() => readScenario(file, 'misspelt.yaml')).toThrow(
      new RegExp(`misspelt.yaml:6: .*${wrong}.*nearest known word is "${right}"`),
    );
  },
);
