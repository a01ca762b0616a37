// What a lookup is told
// ---------------------
// One script for every kind of question: whether what it asks for is found, hidden, forgotten or not answered for.

import type { Book } from '../book/book.js';
import type { Work } from '../book/work.js';
import type { LookupSwitches } from '../script/switches.js';

type Sought = Pick<Work, 'acceptedAtMs' | 'released'>;

export type Verdict<Found> =
  | { readonly kind: 'hang' }
  | { readonly kind: 'found'; readonly found: Found }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string };

export const NO_CREDENTIAL: Verdict<never> = {
  kind: 'refused',
  status: 401,
  message: 'No API key was sent.',
};

type Question<Found> = {
  readonly lookup: LookupSwitches;
  readonly sought: Found | undefined;
  /** How often this was asked before. */
  readonly askedCount: number;
  readonly noun: 'receipt' | 'job';
};

export function decideLookup<Found extends Sought>(
  book: Book,
  question: Question<Found>,
): Verdict<Found> {
  const { lookup, sought, noun } = question;
  if (lookup.hang === true) return { kind: 'hang' };
  const ageMs = sought === undefined ? 0 : book.clock.nowMs() - sought.acceptedAtMs;
  const isForgotten = lookup.forgets_after_ms !== undefined && ageMs >= lookup.forgets_after_ms;
  const isVisible = sought !== undefined && finds(question, sought, ageMs);
  if (isVisible && !isForgotten) return { kind: 'found', found: sought };
  const status = isForgotten && isVisible ? 404 : (lookup.status ?? 404);
  const message =
    status === 404 ? `There is no such ${noun}.` : `The lookup failed with ${status}.`;
  return { kind: 'refused', status, message };
}

function finds({ lookup, askedCount }: Question<Sought>, sought: Sought, ageMs: number): boolean {
  switch (lookup.finds) {
    case undefined:
      return lookup.status === undefined;
    case 'at_once':
      return true;
    case 'never':
      return false;
    case 'after_ms':
      return ageMs >= (lookup.after_ms ?? 0);
    case 'after_count':
      return askedCount >= (lookup.after_count ?? 0);
    case 'after_release':
      return sought.released;
  }
}

/** The name in the book for what is answered. */
export function nameVerdict<Found>(
  verdict: Verdict<Found>,
  nameFound: (found: Found) => string,
): string {
  if (verdict.kind === 'hang') return 'hang';
  if (verdict.kind === 'found') return nameFound(verdict.found);
  return verdict.status === 404 ? 'not_found' : `status_${verdict.status}`;
}
