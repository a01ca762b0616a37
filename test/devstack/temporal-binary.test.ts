import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cachedBinaryPath } from '../../devstack/temporal/cached-path.js';
import { createDownloadWay } from '../../devstack/temporal/fetch-binary.js';
import type { FetchWay } from '../../devstack/temporal/fetch-binary.js';
import { findTemporalBinary, isVersionAtLeast } from '../../devstack/temporal/find-binary.js';
import type { TemporalBinarySearch } from '../../devstack/temporal/find-binary.js';
import { CLI_VERSION, GO_CLI_VERSION, recordedSha256 } from '../../devstack/temporal/releases.js';
import { ignoreProgress, makeFolder, removeFolder } from './support.js';

let folder: string;

beforeEach(() => {
  folder = makeFolder();
});

afterEach(() => {
  removeFolder(folder);
});

/** A program that only tells its version, as `temporal --version` does. */
function programText(serverVersion: string): string {
  return `#!/bin/sh\necho "temporal version 9.9.9 (Server ${serverVersion}, UI 2.0.0)"\n`;
}

function writeProgram(path: string, text: string): string {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

function searchWith(changes: Partial<TemporalBinarySearch> = {}): TemporalBinarySearch {
  return {
    stateDir: folder,
    onProgress: ignoreProgress,
    cacheDirs: [join(folder, 'cache')],
    searchPath: join(folder, 'bin'),
    ways: [],
    ...changes,
  };
}

test.each([
  ['1.29.0', '1.29.0', true],
  ['1.29.1', '1.29.0', true],
  ['1.28.9', '1.29.0', false],
  ['1.100.0', '1.29.0', true],
  ['2.0.0', '1.29.0', true],
  ['0.99.9', '1.29.0', false],
])('%s is at least %s: %s', (version, least, expected) => {
  expect(isVersionAtLeast(version, least)).toBe(expected);
});

test('a program on the path is used when its server is new enough', async () => {
  const path = writeProgram(join(folder, 'bin/temporal'), programText('1.29.1'));
  expect(await findTemporalBinary(searchWith())).toEqual({ path, version: '1.29.1' });
});

test('an old program on the path is passed over for a newer one further on, and told', async () => {
  const old = writeProgram(join(folder, 'old/temporal'), programText('1.28.0'));
  const path = writeProgram(join(folder, 'bin/temporal'), programText('1.30.0'));
  const lines: string[] = [];
  const searchPath = `${join(folder, 'old')}:${join(folder, 'bin')}`;
  const found = await findTemporalBinary(
    searchWith({ searchPath, onProgress: (line) => lines.push(line) }),
  );
  expect(found).toEqual({ path, version: '1.30.0' });
  expect(lines.join('\n')).toContain(`${old} is not used: its server is 1.28.0`);
});

test('a cached program is used when its hash is the recorded one', async () => {
  const text = programText('1.29.1');
  const path = writeProgram(cachedBinaryPath(join(folder, 'cache'), GO_CLI_VERSION), text);
  writeFileSync(`${path}.sha256`, createHash('sha256').update(text).digest('hex'));
  expect(await findTemporalBinary(searchWith())).toEqual({ path, version: '1.29.1' });
});

test('a cached program with another hash is never run', async () => {
  const mark = join(folder, 'it-ran');
  const text = `#!/bin/sh\ntouch ${mark}\n${programText('1.32.0')}`;
  writeProgram(cachedBinaryPath(join(folder, 'cache'), CLI_VERSION), text);
  await expect(findTemporalBinary(searchWith())).rejects.toMatchObject({
    code: 'TEMPORAL_NOT_FOUND',
    message: expect.stringContaining('its SHA-256 is not the recorded one') as string,
  });
  expect(readdirSync(folder)).not.toContain('it-ran');
});

test('the ways are tried in order until one fetches', async () => {
  const path = join(folder, 'cache/fetched');
  const tried: string[] = [];
  const createWay = (name: string, isFetching: boolean): FetchWay => ({
    name,
    description: name,
    fetch: () => {
      tried.push(name);
      if (!isFetching) return Promise.resolve({ status: 'not_fetched', reason: 'offline' });
      return Promise.resolve({
        status: 'fetched',
        path: writeProgram(path, programText('1.32.0')),
      });
    },
  });
  const ways = [createWay('first', false), createWay('second', true), createWay('third', true)];
  expect(await findTemporalBinary(searchWith({ ways }))).toEqual({ path, version: '1.32.0' });
  expect(tried).toEqual(['first', 'second']);
});

test('when nothing helps one message holds every reason and three commands', async () => {
  const failing: FetchWay = {
    name: 'official download',
    description: 'fetching',
    fetch: () => Promise.resolve({ status: 'not_fetched', reason: 'no answer' }),
  };
  const error = await findTemporalBinary(searchWith({ ways: [failing] })).catch(String);
  for (const part of [
    'official download: no answer',
    'brew install temporal',
    'go install github.com/temporalio/cli/cmd/temporal@v',
    'export TEMPORAL_ADDRESS=',
  ]) {
    expect(error).toContain(part);
  }
});

test('an official archive with another program in it is refused and leaves nothing', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.url));
    response.end('this is no archive');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const cacheDirs = [join(folder, 'cache')];
    const way = createDownloadWay(`http://127.0.0.1:${port}/archive`);
    const outcome = await way.fetch({ cacheDirs, onProgress: ignoreProgress });
    expect(outcome).toMatchObject({ status: 'not_fetched' });
    expect(asked).toEqual([expect.stringMatching(/^\/archive\/v1\.9\.1\?platform=\w+&arch=\w+$/)]);
    expect(readdirSync(join(folder, 'cache'))).toEqual([]);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});

test('a cache folder that cannot be made leaves the next one', async () => {
  writeFileSync(join(folder, 'a-file'), '');
  const cacheDirs = [join(folder, 'a-file', 'cache'), join(folder, 'cache')];
  const way = createDownloadWay('http://127.0.0.1:1/archive');
  const outcome = await way.fetch({ cacheDirs, onProgress: ignoreProgress });
  expect(outcome).toMatchObject({ status: 'not_fetched' });
  expect(readdirSync(folder).sort()).toEqual(['a-file', 'cache']);
});

test('what a killed fetch left is removed by the next one', async () => {
  mkdirSync(join(folder, 'cache/fetch-4194305-abc'), { recursive: true });
  mkdirSync(join(folder, `cache/fetch-${process.pid}-abc`));
  const way = createDownloadWay('http://127.0.0.1:1/archive');
  await way.fetch({ cacheDirs: [join(folder, 'cache')], onProgress: ignoreProgress });
  expect(readdirSync(join(folder, 'cache'))).toEqual([`fetch-${process.pid}-abc`]);
});

test('a hash is recorded for the usual platforms and for no other', () => {
  const platforms = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
  for (const platform of platforms) {
    expect(recordedSha256(CLI_VERSION, platform)).toMatch(/^[0-9a-f]{64}$/);
  }
  expect(recordedSha256(CLI_VERSION, 'sunos-x64')).toBe(null);
});
