// Every scenario file is one test; those that the control arm has a figure for are a second one.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Scenario } from '../../scenario-runner/language/scenario.js';
import { readFiles } from '../../scenario-runner/run/run-files.js';
import { type Report, toLines } from '../../scenario-runner/run/report.js';
import type { Theatre } from '../../scenario-runner/run/theatre.js';
import { CHECKOUT, openTestTheatre } from '../support/theatre.js';
import { tableIn, tableOf } from '../support/gateway-table.js';

const files = readdirSync(join(CHECKOUT, 'scenarios'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml'))
  .map((file) => join(CHECKOUT, 'scenarios', file))
  .sort();
const { scenarios, unusable } = readFiles(files);
const reports = new Map<string, Report>();
let theatre: Theatre;

beforeAll(async () => {
  theatre = await openTestTheatre(3);
});
afterAll(async () => {
  await theatre.close();
});

const nameOf = ({ file }: Scenario): string => relative(CHECKOUT, file);

test('every scenario file can be played', () => {
  expect(unusable.map(({ message }) => message)).toEqual([]);
  expect(scenarios.length).toBeGreaterThan(20);
});

describe.concurrent('scenarios', () => {
  for (const scenario of scenarios) {
    if (scenario.pending === undefined) {
      test.concurrent(nameOf(scenario), async () => {
        const report = await theatre.play(scenario, { policy: 'holdfast' });
        reports.set(scenario.name, report);
        if (report.verdict !== 'pass') throw new Error(toLines(report).join('\n'));
      });
    } else {
      test.skip(`${nameOf(scenario)}: pending, ${scenario.pending}`);
    }
  }
});

describe.concurrent('scenarios played by the control arm', () => {
  for (const scenario of scenarios.filter(({ naive }) => naive !== undefined)) {
    test.concurrent(`${nameOf(scenario)} ends at the figure it states, or worse`, async () => {
      const report = await theatre.play(scenario, { policy: 'naive' });
      const figure = report.checks.find(({ name }) => name === 'naive charged');
      expect(figure?.ok, toLines(report).join('\n')).toBe(true);
      const cap = report.checks.find(({ name }) => name === 'cap');
      expect(report.verdict).toBe(cap?.ok === false ? 'fail' : 'pass');
    });
  }
});

test('the table in README is what these runs ended in', () => {
  const file = `${CHECKOUT}/README.md`;
  const readme = readFileSync(file, 'utf8');
  const rows = scenarios.filter(({ gateway }) => gateway !== undefined);
  const table = tableOf(rows, reports);
  if (process.env['UPDATE_README'] === '1') {
    writeFileSync(file, readme.replace(tableIn(readme), table));
    return;
  }
  expect(tableIn(readme)).toBe(table);
});
