/** One figure that was compared: read from the source that is named, at the moment of the line. */
export interface Check {
  readonly name: string;
  readonly expected: string;
  readonly actual: string;
  readonly ok: boolean;
  readonly source: string;
  readonly line: number;
}

/** The way a play cannot go on, though the product may be in order. */
export class PlayError extends Error {
  override readonly name = 'PlayError';
}

/** A state that did not come while everything stands: the product is not where the file says it is. */
export class WaitedInVain extends PlayError {}
