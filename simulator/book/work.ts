import type { Switches } from '../script/switches.js';
import type { ChargeEntry, Stamp } from './entries.js';

/** What all work has that can be charged, be it answered at once or followed to its end. */
export type Work = {
  readonly id: string;
  /** What the answer says its id is: another one's, or none. */
  readonly statedId: string | null;
  readonly seq: number;
  readonly key: string | null;
  readonly model: string;
  readonly executionNo: number;
  readonly digest: string;
  switches: Switches;
  /** What it may still come to while it runs, and then what it came to. */
  bill: string;
  acceptedAtMs: number;
  charged: string;
  chargedAt: string | null;
  chargedRealAt: string | null;
  released: boolean;
};

type Fresh = Pick<Work, 'acceptedAtMs' | 'charged' | 'chargedAt' | 'chargedRealAt' | 'released'>;

export function freshWork(at: string): Fresh {
  return {
    acceptedAtMs: Date.parse(at),
    charged: '0',
    chargedAt: null,
    chargedRealAt: null,
    released: false,
  };
}

export function chargeWork(work: Work, { total, at, realAt }: ChargeEntry & Stamp): void {
  work.charged = total;
  work.chargedAt ??= at;
  work.chargedRealAt ??= realAt;
}
