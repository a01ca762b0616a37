// The book
// --------
// The provider's own bill, as entries in the order they happened. With a file it outlives its process.
//
// 1. An entry is in the file before anything that follows from it is said to anyone.
// 2. Entries that belong together are written with one call, so a kill leaves all of them or none.

import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { z } from 'zod';
import { createClock } from './clock.js';
import type { Clock } from './clock.js';
import type { Entry, StampedEntry } from './entries.js';
import { applyEntry, createBookState } from './state.js';
import type { BookState } from './state.js';

export type Book = {
  readonly state: Readonly<BookState>;
  readonly clock: Clock;
  readonly record: (...entries: readonly Entry[]) => void;
  /** The number of a request, given when it arrives and not when it is decided. */
  readonly nextSeq: () => number;
};

class BookError extends Error {
  override readonly name = 'BookError';
}

const lineSchema = z.looseObject({
  event: z.string(),
  tick: z.int(),
  at: z.string(),
  realAt: z.string(),
});

export function openBook(file?: string): Book {
  const state = createBookState();
  if (file !== undefined) loadEntries(file, state);
  const clock = createClock(state.offsetMs);
  let lastSeq = state.lastSeq;
  return {
    state,
    clock,
    record(...entries) {
      const nowMs = Date.now();
      const realAt = new Date(nowMs).toISOString();
      const at = new Date(nowMs + clock.offsetMs()).toISOString();
      const stamped = entries.map((entry, index) => ({
        ...entry,
        tick: state.lastTick + 1 + index,
        at,
        realAt,
      }));
      if (file !== undefined) {
        appendFileSync(file, stamped.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
      }
      for (const entry of stamped) applyEntry(state, entry);
    },
    nextSeq() {
      lastSeq += 1;
      return lastSeq;
    },
  };
}

function loadEntries(file: string, state: BookState): void {
  if (!existsSync(file)) {
    appendFileSync(file, '');
    return;
  }
  const bytes = readFileSync(file);
  // A line without its end was being written when the process was killed: nobody was told of it.
  const wholeLength = bytes.lastIndexOf(10) + 1;
  if (wholeLength < bytes.length) truncateSync(file, wholeLength);
  const lines = bytes.subarray(0, wholeLength).toString('utf8').split('\n');
  for (const [index, line] of lines.slice(0, -1).entries()) {
    try {
      applyEntry(state, parseLine(line));
    } catch (error) {
      throw new BookError(`Line ${index + 1} of ${file} is not an entry of the bill.`, {
        cause: error,
      });
    }
  }
}

function parseLine(line: string): StampedEntry {
  return lineSchema.parse(JSON.parse(line)) as unknown as StampedEntry;
}
