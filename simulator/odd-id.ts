import { randomUUID } from 'node:crypto';

/** An id that nobody expects in a URL: a client that does not encode it asks for something else. */
export function oddId(prefix: string): string {
  return `${prefix}/\n..${randomUUID()}`;
}
