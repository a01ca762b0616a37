import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readScenarioFile } from '../../scenario-runner/language/read-scenario.js';

const listFiles = (folder: string, end: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end))
    .map((file) => join(folder, file));

test('neither the runner nor the simulator contains the name of a scenario', () => {
  const names = listFiles('scenarios', '.yaml').map((file) => readScenarioFile(file).name);
  expect(names.length).toBeGreaterThan(10);
  const sources = ['scenario-runner', 'simulator'].flatMap((folder) => listFiles(folder, '.ts'));
  const found = sources.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    return names.filter((name) => text.includes(name)).map((name) => `${file}: ${name}`);
  });
  expect(found).toEqual([]);
});
