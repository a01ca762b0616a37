import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readRunFile, removeRunFile, writeRunFile } from '../../devstack/run-file.js';
import type { RunAddresses } from '../../devstack/run-file.js';
import { makeFolder, removeFolder } from './support.js';

const ADDRESSES: RunAddresses = {
  databaseUrl: 'postgresql://app:secret@127.0.0.1:5432/holdfast',
  databaseAdminUrl: 'postgresql://postgres:secret@127.0.0.1:5432/postgres',
  temporalAddress: '127.0.0.1:7233',
  temporalNamespace: 'default',
  uiUrl: 'http://127.0.0.1:8233',
  simulatorUrl: null,
  temporalBinary: null,
  configFile: null,
};

let folder: string;
let file: string;

beforeEach(() => {
  folder = makeFolder();
  file = join(folder, 'run.json');
});

afterEach(() => {
  removeFolder(folder);
});

/** The file as another process would have left it. */
function rewrite(changes: Record<string, unknown>): void {
  const fields = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  writeFileSync(file, JSON.stringify({ ...fields, ...changes }));
}

test('without a file nothing runs', () => {
  expect(readRunFile(folder)).toEqual({ kind: 'none' });
  expect(readRunFile(join(folder, 'not-there'))).toEqual({ kind: 'none' });
});

test('what a live process wrote is read back', () => {
  const run = writeRunFile(folder, ADDRESSES);
  expect(readRunFile(folder)).toEqual({ kind: 'running', run });
  expect(run).toMatchObject({ ...ADDRESSES, schemaVersion: 1, main: { pid: process.pid } });
});

test('only its owner may read the file, and no part file stays', () => {
  writeRunFile(folder, ADDRESSES);
  writeRunFile(folder, ADDRESSES);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['run.json']);
});

test('the file of a process that is gone is stale', () => {
  writeRunFile(folder, ADDRESSES);
  rewrite({ main: { pid: 2 ** 22 + 1, startToken: 'any' } });
  expect(readRunFile(folder)).toMatchObject({ kind: 'stale', run: ADDRESSES });
});

test('a process id that was given to another process is recognised', () => {
  writeRunFile(folder, ADDRESSES);
  rewrite({ main: { pid: process.pid, startToken: 'an earlier moment' } });
  expect(readRunFile(folder)).toMatchObject({ kind: 'stale' });
});

test.each([
  ['nothing', ''],
  ['half a file', '{"schemaVersion":1,"main":'],
  ['a list', '[]'],
  ['null', 'null'],
  ['an empty object', '{}'],
])('%s in the file is stale, not a crash', (_name, text) => {
  writeFileSync(file, text);
  expect(readRunFile(folder)).toMatchObject({ kind: 'stale', run: null });
});

test('a file of another schema version or with a missing address is stale', () => {
  writeRunFile(folder, ADDRESSES);
  rewrite({ schemaVersion: 2 });
  expect(readRunFile(folder)).toMatchObject({ kind: 'stale', run: null });
  writeRunFile(folder, ADDRESSES);
  rewrite({ databaseUrl: 5 });
  expect(readRunFile(folder)).toMatchObject({ kind: 'stale', run: null });
});

test('removing takes our own file or a stale one', () => {
  expect(removeRunFile(folder)).toBe(false);
  writeRunFile(folder, ADDRESSES);
  expect(removeRunFile(folder)).toBe(true);
  writeFileSync(file, 'broken');
  expect(removeRunFile(folder)).toBe(true);
  expect(readRunFile(folder)).toEqual({ kind: 'none' });
});
