import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readScenario, readScenarioFile } from '../../scenario-runner/language/read-scenario.js';
import { readFiles } from '../../scenario-runner/run/run-files.js';
import { complaint, complaintOf, GOOD, withLimit } from './small-scenario.js';

describe('what YAML allows and a scenario does not', () => {
  test.each([
    ['a duplicate key', `${GOOD}about: z\n`, '9: the key "about" stands twice in one mapping'],
    ['an anchor', GOOD.replace('y', '&k y'), '2: anchors are not part of the language'],
    ['an alias', GOOD.replace('y', '*k'), '2: aliases are not part of the language; write it out'],
    [
      'a merge key',
      GOOD.replace('about: y', 'about: y\n<<: { pending: z }'),
      '3: <<: unknown word; the nearest known word is "about"',
    ],
    [
      'a tag that runs code elsewhere',
      GOOD.replace('y', '!!js/function "x"'),
      '2: tags are not part of the language: !!js/function',
    ],
    ['a tag', GOOD.replace('y', '!!str y'), '2: tags are not part of the language: !!str'],
    ['a directive', `%YAML 1.1\n---\n${GOOD}`, '1: directives are not part of the language'],
    [
      'a second document',
      `${GOOD}---\n${GOOD}`,
      '9: a second document begins here; a file is one scenario',
    ],
    ['tabs', GOOD.replace('  budgets', '\tbudgets'), '4: a tab cannot indent; use spaces'],
    [
      'deep nesting',
      withLimit('['.repeat(5_000) + ']'.repeat(5_000)),
      '1: is nested deeper than 40 levels',
    ],
    [
      'nesting that is deep, and that the parser can read',
      withLimit('['.repeat(200) + ']'.repeat(200)),
      '5: is nested deeper than 40 levels',
    ],
    [
      'nesting that never ends',
      withLimit('['.repeat(100_000)),
      '1: is nested deeper than 40 levels',
    ],
  ])('%s', (_what, text, message) => {
    expect(complaint(text)).toBe(`f.yaml:${message}`);
  });

  test.each([
    ['Windows line ends', GOOD.replaceAll('\n', '\r\n')],
    ['no line end at the end', GOOD.trimEnd()],
    ['a byte order mark', `\uFEFF${GOOD}`],
    ['JSON', JSON.stringify(readGood())],
  ])('%s make no difference', (_what, text) => {
    const meant = (from: string): object => {
      const { steps, ...rest } = readScenario(from, 'f.yaml');
      return { ...rest, expectLine: 0, steps: steps.map(({ step }) => step) };
    };
    expect(meant(text)).toEqual(meant(GOOD));
  });

  test('lines are counted right with Windows line ends', () => {
    expect(complaint(`${GOOD}expekt: 1\n`.replaceAll('\n', '\r\n'))).toMatch(/^f\.yaml:9: expekt/);
  });
});

function readGood(): object {
  return {
    scenario: 'x',
    about: 'y',
    given: { budgets: { b: { limit: 10 } } },
    steps: [{ call: 'a' }],
    expect: { admitted: 1 },
  };
}

describe('a file', () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-language-'));
  const write = (name: string, content: string | Buffer): string => {
    const path = join(dir, name);
    writeFileSync(path, content);
    return path;
  };
  mkdirSync(join(dir, 'folder'));
  const begins = 'a scenario is a mapping that begins with `scenario: NAME`';

  test.each([
    [
      'of 10 MB',
      write('big.yaml', 'a'.repeat(10_000_000)),
      'is 10000000 bytes long; a scenario has at most 262144',
    ],
    [
      'that is a directory',
      join(dir, 'folder'),
      'is a directory; name its files, such as DIR/*.yaml',
    ],
    ['that is missing', join(dir, 'none.yaml'), 'there is no such file'],
    ['that is no plain file', '/dev/null', 'is no plain file'],
    ['that is empty', write('empty.yaml', ''), `is empty; ${begins}`],
    ['of comments', write('comments.yaml', '# nothing\n'), `is empty; ${begins}`],
    ['of text', write('text.yaml', 'hello\n'), `is text; ${begins}`],
    ['that is a list', write('list.yaml', '- a\n'), `is a list; ${begins}`],
    ['that is binary', write('binary.yaml', Buffer.from([0, 1, 255, 254])), 'is not text in UTF-8'],
    [
      'in Latin-1',
      write('latin.yaml', Buffer.from('about: h\xF6her', 'latin1')),
      'is not text in UTF-8',
    ],
    ['in UTF-16', write('utf16.yaml', Buffer.from(GOOD, 'utf16le')), 'is not text in UTF-8'],
  ])('%s', (_what, path, message) => {
    expect(complaintOf(() => readScenarioFile(path))).toBe(`${path}:1: ${message}`);
  });

  test('with the name of another is unusable, and the other is not', () => {
    const [one, two, three] = ['one', 'two', 'three'].map((name) =>
      write(`${name}.yaml`, name === 'three' ? GOOD.replace('scenario: x', 'scenario: z') : GOOD),
    ) as [string, string, string];
    const { scenarios, unusable } = readFiles([one, two, three]);
    expect(scenarios.map(({ name, file }) => [name, file])).toEqual([
      ['x', one],
      ['z', three],
    ]);
    expect(unusable.map(({ message }) => message)).toEqual([
      `${two}:1: its name "x" is also that of ${one}`,
    ]);
  });

  test('that is named twice is played once', () => {
    const path = write('once.yaml', GOOD);
    expect(readFiles([path, join(dir, 'folder', '..', 'once.yaml')]).scenarios).toHaveLength(1);
  });
});
