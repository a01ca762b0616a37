import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { FAILURES } from '../../domain/failure.js';

const text = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

describe('documents', () => {
  test('docs/errors.md has exactly the codes of domain/failure.ts', () => {
    const documented = [...text('docs/errors.md').matchAll(/^## `([A-Z_]+)`$/gm)].map(
      (match) => match[1],
    );
    expect(documented.sort()).toEqual(Object.keys(FAILURES).sort());
  });

  test('docs/invariants.md names for each promise tests that exist', () => {
    const named = [...text('docs/invariants.md').matchAll(/`(test\/[a-z/.-]+\.test\.ts)`/g)].map(
      (match) => match[1] ?? '',
    );
    expect(named.length).toBeGreaterThan(10);
    for (const path of named) expect(() => text(path), path).not.toThrow();
  });
});
