export type DevstackErrorCode =
  | 'ALREADY_RUNNING'
  | 'DATABASE_UNREACHABLE'
  | 'POSTGRES_NOT_FOUND'
  | 'POSTGRES_NOT_STARTED'
  | 'PROCESS_NOT_READY'
  | 'SERVER_NOT_STOPPED'
  | 'TEMPORAL_NOT_FOUND'
  | 'TEMPORAL_NOT_STARTED';

/** A failure of the machine we run on. Its message is written for the person at the terminal. */
export class DevstackError extends Error {
  readonly code: DevstackErrorCode;

  constructor(code: DevstackErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DevstackError';
    this.code = code;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The code that Node's system calls put on their errors, such as `ENOENT`. */
export function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
