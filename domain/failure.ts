// Failures
// --------
// Failures of the world or of the caller, one table. Expected outcomes are not here: they are
// values. `docs/errors.md` holds the same codes; a test compares the two.

export interface FailureSpec {
  readonly retryable: boolean;
  readonly summary: string;
}

export const FAILURES = {
  LEDGER_UNAVAILABLE: { retryable: true, summary: 'The ledger could not be reached.' },
  LEDGER_UNTRUSTED: {
    retryable: true,
    summary: 'The database is not the one this ledger was set up on.',
  },
  LEDGER_ACCESS_DENIED: {
    retryable: false,
    summary: 'The ledger refused the user name, the password or the database.',
  },
  LEDGER_SCHEMA_MISMATCH: {
    retryable: false,
    summary: 'The ledger has another schema version than this program.',
  },
  LEDGER_NOT_DURABLE: {
    retryable: false,
    summary: 'The ledger database can lose acknowledged writes.',
  },
  LEDGER_CONTRACT_BROKEN: {
    retryable: false,
    summary: 'A ledger function refused its arguments or answered in an unknown form: a bug.',
  },
  TEMPORAL_UNAVAILABLE: { retryable: true, summary: 'The Temporal server could not be reached.' },
  INVALID_INPUT: { retryable: false, summary: 'A field of the request is wrong.' },
  INVALID_CONFIGURATION: { retryable: false, summary: 'The configuration is wrong.' },
  NOTHING_RUNNING: { retryable: false, summary: 'No running Holdfast was found to talk to.' },
  CHARGE_NOT_KNOWN_YET: {
    retryable: true,
    summary: 'The provider was asked and the charge is not known yet.',
  },
} as const satisfies Record<string, FailureSpec>;

export type FailureCode = keyof typeof FAILURES;

export class HoldfastError extends Error {
  override readonly name = 'HoldfastError';
  readonly code: FailureCode;

  constructor(code: FailureCode, detail: string, options?: ErrorOptions) {
    super(`${code}: ${detail}`, options);
    this.code = code;
  }

  get retryable(): boolean {
    return FAILURES[this.code].retryable;
  }
}
