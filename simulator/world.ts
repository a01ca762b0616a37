import type { Book } from './book/book.js';
import type { PriceList } from './book/prices.js';
import type { Executions } from './executions.js';
import type { Jobs } from './jobs.js';
import type { Behaviours } from './script/behaviours.js';

/** What every route works with. */
export type World = {
  readonly book: Book;
  readonly prices: PriceList;
  readonly executions: Executions;
  readonly jobs: Jobs;
  readonly behaviours: Behaviours;
};
