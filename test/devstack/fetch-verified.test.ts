import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fetchVerified } from '../../devstack/fetch-verified.js';
import type { FetchRequest } from '../../devstack/fetch-verified.js';
import { makeFolder, removeFolder } from './support.js';

const BODY = Buffer.alloc(256 * 1024, 'holdfast');
const BODY_SHA256 = createHash('sha256').update(BODY).digest('hex');

let folder: string;
let server: Server;
let respond: (response: ServerResponse) => void;
let requestCount: number;

beforeEach(async () => {
  folder = makeFolder();
  requestCount = 0;
  server = createServer((_request, response) => {
    requestCount += 1;
    respond(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  removeFolder(folder);
});

function requestFor(changes: Partial<FetchRequest> = {}): FetchRequest {
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/program`,
    file: join(folder, 'program'),
    sha256: BODY_SHA256,
    byteCountMax: 10 * 1024 * 1024,
    answerLimitMs: 10_000,
    pauseLimitMs: 10_000,
    ...changes,
  };
}

test('a file with the right hash stands under its name, whole', async () => {
  respond = (response) => response.end(BODY);
  expect(await fetchVerified(requestFor())).toEqual({ status: 'fetched', byteCount: BODY.length });
  expect(readFileSync(join(folder, 'program')).equals(BODY)).toBe(true);
  expect(readdirSync(folder)).toEqual(['program']);
});

test('a file with another hash is thrown away', async () => {
  respond = (response) => response.end('something else');
  const sha256 = createHash('sha256').update('something else').digest('hex');
  expect(await fetchVerified(requestFor())).toEqual({ status: 'wrong_hash', sha256 });
  expect(readdirSync(folder)).toEqual([]);
});

test('a wrong file leaves the one that stood there before', async () => {
  writeFileSync(join(folder, 'program'), 'the old one');
  respond = (response) => response.end('something else');
  expect(await fetchVerified(requestFor())).toMatchObject({ status: 'wrong_hash' });
  expect(readFileSync(join(folder, 'program'), 'utf8')).toBe('the old one');
});

test('a connection that is cut half-way leaves nothing', async () => {
  respond = (response) => {
    response.writeHead(200, { 'content-length': BODY.length });
    response.write(BODY.subarray(0, 1000), () => response.destroy());
  };
  expect(await fetchVerified(requestFor())).toMatchObject({ status: 'cut_short' });
  expect(readdirSync(folder)).toEqual([]);
});

test('a connection that is cut without a stated length leaves nothing', async () => {
  respond = (response) => {
    response.write(BODY.subarray(0, 1000), () => response.destroy());
  };
  expect(await fetchVerified(requestFor())).toMatchObject({ status: 'cut_short' });
  expect(readdirSync(folder)).toEqual([]);
});

test('a server that takes the request and is silent is given up', async () => {
  respond = () => undefined;
  const result = await fetchVerified(requestFor({ answerLimitMs: 200 }));
  expect(result).toEqual({ status: 'no_answer', reason: 'nothing came for 200 ms' });
  expect([requestCount, readdirSync(folder)]).toEqual([1, []]);
});

test('a stream that stops in the middle is given up', async () => {
  respond = (response) => response.write(BODY.subarray(0, 1000));
  const result = await fetchVerified(requestFor({ pauseLimitMs: 200 }));
  expect(result).toEqual({ status: 'cut_short', reason: 'nothing came for 200 ms' });
  expect(readdirSync(folder)).toEqual([]);
});

test('nobody at the address is an answer with a name', async () => {
  const request = requestFor();
  await new Promise((resolve) => server.close(resolve));
  expect(await fetchVerified(request)).toMatchObject({ status: 'no_answer' });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

test('an error page is not taken for the file', async () => {
  respond = (response) => response.writeHead(404).end(BODY);
  expect(await fetchVerified(requestFor())).toEqual({ status: 'refused', httpStatus: 404 });
  expect(readdirSync(folder)).toEqual([]);
});

test('a file larger than allowed is not read to its end', async () => {
  respond = (response) => response.end(BODY);
  const result = await fetchVerified(requestFor({ byteCountMax: 1000 }));
  expect(result).toEqual({ status: 'too_large', byteCountMax: 1000 });
  expect(readdirSync(folder)).toEqual([]);
});

test.runIf(existsSync('/dev/full'))('a full disk leaves nothing', async () => {
  respond = (response) => response.end(BODY);
  const partFile = join(folder, 'part');
  symlinkSync('/dev/full', partFile);
  const result = await fetchVerified(requestFor({ partFile }));
  expect(result).toMatchObject({
    status: 'not_written',
    reason: expect.stringMatching(/ENOSPC/) as string,
  });
  expect(readdirSync(folder)).toEqual([]);
  expect(existsSync('/dev/full')).toBe(true);
});

test('a folder that cannot be made is told before anything is asked', async () => {
  writeFileSync(join(folder, 'a-file'), '');
  const result = await fetchVerified(requestFor({ file: join(folder, 'a-file', 'program') }));
  expect(result).toMatchObject({ status: 'not_written' });
  expect(requestCount).toBe(0);
});

test('the hash of an archive’s content decides, not that of the archive', async () => {
  respond = (response) => response.end('archive');
  const unpack = async (_fetched: string, unpacked: string): Promise<void> => {
    writeFileSync(join(folder, 'source'), BODY);
    await copyFile(join(folder, 'source'), unpacked);
  };
  expect(await fetchVerified(requestFor({ unpack }))).toMatchObject({ status: 'fetched' });
  expect(readdirSync(folder).sort()).toEqual(['program', 'source']);
});

test('an archive that does not open is an answer with a name', async () => {
  respond = (response) => response.end('archive');
  const unpack = (): Promise<void> => Promise.reject(new Error('not an archive'));
  const result = await fetchVerified(requestFor({ unpack }));
  expect(result).toEqual({ status: 'not_unpacked', reason: 'not an archive' });
  expect(readdirSync(folder)).toEqual([]);
});
