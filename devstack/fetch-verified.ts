// Fetch verified
// --------------
// Brings a file over HTTP, and it is there whole or not at all.
// 1. Bytes go to a part file; the name asked for appears by a rename, after the hash was right.
// 2. Every wait has a limit, and so has the size.
// 3. What goes wrong is an answer with a name, because the caller has another way to go on with.

import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf, systemCodeOf } from './devstack-error.js';

export interface FetchRequest {
  url: string;
  /** Where the file shall stand. */
  file: string;
  /** Of the file, in lower case hex. */
  sha256: string;
  byteCountMax: number;
  /** How long to wait for the first answer. */
  answerLimitMs: number;
  /** How long the stream may pause. */
  pauseLimitMs: number;
  /** Where the bytes stand until they are verified; beside the file by default. */
  partFile?: string;
  /** Turns what was fetched, an archive, into the file whose hash is known. */
  unpack?: (fetched: string, unpacked: string) => Promise<void>;
}

export type FetchResult =
  | { status: 'fetched'; byteCount: number }
  | { status: 'no_answer'; reason: string }
  | { status: 'refused'; httpStatus: number }
  | { status: 'cut_short'; reason: string }
  | { status: 'too_large'; byteCountMax: number }
  | { status: 'not_written'; reason: string }
  | { status: 'not_unpacked'; reason: string }
  | { status: 'wrong_hash'; sha256: string };

export async function fetchVerified(request: FetchRequest): Promise<FetchResult> {
  const partFile = request.partFile ?? `${request.file}.${randomUUID()}.part`;
  const unpackedFile = `${partFile}.unpacked`;
  try {
    const fetched = await fetchToPart(request, partFile);
    if (fetched.status !== 'fetched' || request.unpack === undefined) {
      return fetched.status === 'fetched' ? await install(request, partFile, fetched) : fetched;
    }
    try {
      await request.unpack(partFile, unpackedFile);
    } catch (error) {
      return { status: 'not_unpacked', reason: messageOf(error) };
    }
    return await install(request, unpackedFile, fetched);
  } finally {
    await removeIfThere(partFile);
    await removeIfThere(unpackedFile);
  }
}

/** One line for a person. */
export function describeFetch(result: FetchResult): string {
  switch (result.status) {
    case 'fetched':
      return `fetched ${result.byteCount} bytes`;
    case 'refused':
      return `the server answered ${result.httpStatus}`;
    case 'too_large':
      return `more than ${result.byteCountMax} bytes`;
    case 'wrong_hash':
      return `its SHA-256 is ${result.sha256}, which is not the recorded one`;
    case 'no_answer':
    case 'cut_short':
    case 'not_written':
    case 'not_unpacked':
      return `${result.status.replaceAll('_', ' ')}: ${result.reason}`;
  }
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: 1024 * 1024 }), hash);
  return hash.digest('hex');
}

/** Renames the file into place if its hash is right; answers the hash it has. */
export async function installVerified(
  from: string,
  to: string,
  sha256: string,
): Promise<{ status: 'installed' } | { status: 'wrong_hash'; sha256: string }> {
  const actual = await sha256Of(from);
  if (actual !== sha256) return { status: 'wrong_hash', sha256: actual };
  await rename(from, to);
  return { status: 'installed' };
}

async function install(
  request: FetchRequest,
  from: string,
  fetched: FetchResult,
): Promise<FetchResult> {
  try {
    const installed = await installVerified(from, request.file, request.sha256);
    return installed.status === 'installed' ? fetched : installed;
  } catch (error) {
    return { status: 'not_written', reason: messageOf(error) };
  }
}

async function fetchToPart(request: FetchRequest, partFile: string): Promise<FetchResult> {
  let handle: FileHandle;
  try {
    await mkdir(dirname(partFile), { recursive: true });
    handle = await open(partFile, 'w', 0o600);
  } catch (error) {
    return { status: 'not_written', reason: messageOf(error) };
  }
  try {
    return await receive(request, handle);
  } finally {
    await handle.close();
  }
}

async function receive(request: FetchRequest, handle: FileHandle): Promise<FetchResult> {
  const abort = new AbortController();
  const timer = createWatch(abort);
  try {
    timer.allow(request.answerLimitMs);
    let response: Response;
    try {
      response = await fetch(request.url, { signal: abort.signal, redirect: 'follow' });
    } catch (error) {
      return { status: 'no_answer', reason: causeOf(error) };
    }
    if (!response.ok || response.body === null) {
      return { status: 'refused', httpStatus: response.status };
    }
    timer.allow(request.pauseLimitMs);
    return await writeBody(response.body, {
      handle,
      byteCountMax: request.byteCountMax,
      onChunk: () => {
        timer.allow(request.pauseLimitMs);
      },
    });
  } finally {
    timer.clear();
    // Also ends a body that is not wanted any more.
    abort.abort();
  }
}

interface BodySink {
  handle: FileHandle;
  byteCountMax: number;
  onChunk: () => void;
}

async function writeBody(body: ReadableStream<Uint8Array>, sink: BodySink): Promise<FetchResult> {
  const reader = body.getReader();
  let byteCount = 0;
  for (;;) {
    let step: Awaited<ReturnType<typeof reader.read>>;
    try {
      step = await reader.read();
    } catch (error) {
      return { status: 'cut_short', reason: causeOf(error) };
    }
    if (step.done) return { status: 'fetched', byteCount };
    sink.onChunk();
    byteCount += step.value.byteLength;
    if (byteCount > sink.byteCountMax)
      return { status: 'too_large', byteCountMax: sink.byteCountMax };
    try {
      await sink.handle.writeFile(step.value);
    } catch (error) {
      return { status: 'not_written', reason: messageOf(error) };
    }
  }
}

/** Aborts when nothing happened for the time last allowed. */
function createWatch(abort: AbortController): { allow: (ms: number) => void; clear: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const clear = (): void => {
    clearTimeout(timer);
  };
  const allow = (ms: number): void => {
    clear();
    timer = setTimeout(() => {
      abort.abort(new Error(`nothing came for ${ms} ms`));
    }, ms);
  };
  return { allow, clear };
}

async function removeIfThere(file: string): Promise<void> {
  try {
    await rm(file, { force: true });
  } catch (error) {
    // Its folder could not be made, so there is nothing to remove.
    if (systemCodeOf(error) !== 'ENOTDIR') throw error;
  }
}

/** `fetch` says "fetch failed" or "terminated" and keeps the reason in the cause. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error) || error.cause === undefined) return messageOf(error);
  const cause = messageOf(error.cause);
  return cause === '' ? messageOf(error) : cause;
}
