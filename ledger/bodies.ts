// The body store on Postgres. Texts are referred to by digest everywhere else.

import { createHash } from 'node:crypto';
import type { Ledger } from './connection.js';

export interface BodyStore {
  /** Stores a text and answers its reference. Storing it again is safe. */
  put(text: string): Promise<string>;
  /** Undefined when the text was purged or never stored. */
  get(reference: string): Promise<string | undefined>;
}

export function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text, 'utf8').digest('hex')}`;
}

export function createBodyStore(ledger: Ledger): BodyStore {
  return {
    async put(text) {
      const reference = digestOf(text);
      await ledger.query({
        name: 'put_body',
        text: 'select ledger.put_body($1, $2)',
        values: [reference, text],
      });
      return reference;
    },
    async get(reference) {
      const rows = await ledger.query({
        name: 'get_body',
        text: 'select ledger.get_body($1) as content',
        values: [reference],
      });
      const content = rows[0]?.['content'];
      return typeof content === 'string' ? content : undefined;
    },
  };
}
