// The text of a scenario file, or a sentence why it is none.

import { readFileSync, statSync } from 'node:fs';
import { UnusableFile } from './unusable.js';

const FILE_SIZE_MAX = 256 * 1024;

export function readText(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  const refuse = (message: string): never => {
    throw new UnusableFile(file, [{ line: 1, message }]);
  };
  if (stat === undefined) return refuse('there is no such file');
  if (stat.isDirectory()) return refuse('is a directory; name its files, such as DIR/*.yaml');
  if (!stat.isFile()) return refuse('is no plain file');
  if (stat.size > FILE_SIZE_MAX) {
    return refuse(`is ${stat.size} bytes long; a scenario has at most ${FILE_SIZE_MAX}`);
  }
  return decode(readBytes(file, refuse)) ?? refuse('is not text in UTF-8');
}

function readBytes(file: string, refuse: (message: string) => never): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    return refuse(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A NUL is valid UTF-8, but no text has one: it is a program, an archive, or UTF-16. */
function decode(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
