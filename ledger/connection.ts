// Connection
// ----------
// How a ledger step reaches Postgres.
//
// Invariants:
//   C1. A step is one statement and one round trip, and repeating it is safe: every function of the
//       ledger answers a repeat. So a lost answer is asked again, over a fresh connection.
//   C2. A step is tried for `stepLimitMs`, then it is LEDGER_UNAVAILABLE. Nothing is answered from
//       a cache, ever.
//   C3. An error of the server is told by its SQLSTATE, never by its message.

import pg from 'pg';
import { HoldfastError } from '../domain/failure.js';

export interface LedgerOptions {
  readonly databaseUrl: string;
  readonly poolSizeMax?: number;
  /** How long a step is tried, in milliseconds; rules say 5 s before the fence. */
  readonly stepLimitMs?: number;
  /** How long one try of a step may take, in milliseconds; more only for what is long by nature. */
  readonly tryLimitMs?: number;
  readonly applicationName?: string;
}

export interface Ledger {
  /** One ledger function with one JSON argument. Throws HoldfastError. */
  call(name: string, argument: object): Promise<unknown>;
  /** One statement, as rows. Throws HoldfastError. */
  query(statement: Statement): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

export interface Statement {
  /** Prepared once a connection under this name. */
  readonly name: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

const STEP_LIMIT_MS = 5_000;
const TRY_LIMIT_MS = 2_400;
const CONNECT_LIMIT_MS = 1_500;
const PAUSE_MS = 100;

/** A failure of the way, not of the statement: it may or may not have been carried out. */
class WayLost extends Error {}

export function openLedger(options: LedgerOptions): Ledger {
  const limits = {
    stepMs: options.stepLimitMs ?? STEP_LIMIT_MS,
    tryMs: options.tryLimitMs ?? TRY_LIMIT_MS,
  };
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    max: options.poolSizeMax ?? 10,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    idleTimeoutMillis: 60_000,
    statement_timeout: Math.max(STEP_LIMIT_MS, limits.tryMs),
    application_name: options.applicationName ?? 'holdfast',
    keepAlive: true,
  });
  // An idle connection that dies is replaced at its next use; without a listener it ends the process.
  pool.on('error', () => undefined);
  // One in use that dies says so twice: to its statement, which is heard, and as an event.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const query = (statement: Statement): Promise<Record<string, unknown>[]> =>
    runStep(pool, statement, limits);
  return {
    query,
    async call(name, argument) {
      const rows = await query({
        name: `call/${name}`,
        text: `select ledger.${name}($1::jsonb) as answer`,
        values: [JSON.stringify(argument)],
      });
      return rows[0]?.['answer'];
    },
    close: () => pool.end(),
  };
}

async function runStep(
  pool: pg.Pool,
  statement: Statement,
  limits: { readonly stepMs: number; readonly tryMs: number },
): Promise<Record<string, unknown>[]> {
  const until = performance.now() + limits.stepMs;
  for (;;) {
    try {
      return await tryOnce(pool, statement, Math.min(limits.tryMs, until - performance.now()));
    } catch (error) {
      const failure = toFailure(error);
      if (!(failure instanceof WayLost)) throw failure;
      if (performance.now() + PAUSE_MS >= until) {
        throw new HoldfastError('LEDGER_UNAVAILABLE', `no answer within ${limits.stepMs} ms`, {
          cause: error,
        });
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

async function tryOnce(
  pool: pg.Pool,
  statement: Statement,
  limitMs: number,
): Promise<Record<string, unknown>[]> {
  let expire: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    expire = setTimeout(() => {
      reject(new WayLost('the statement was not answered in time'));
    }, limitMs);
  });
  const connecting = pool.connect();
  let client: pg.PoolClient | undefined;
  try {
    client = await Promise.race([connecting, expired]);
    const result = await Promise.race([
      client.query<Record<string, unknown>>({
        name: statement.name,
        text: statement.text,
        values: [...(statement.values ?? [])],
      }),
      expired,
    ]);
    client.release();
    return result.rows;
  } catch (error) {
    if (client === undefined) {
      connecting.then(
        (late) => {
          late.release(true);
        },
        () => undefined,
      );
    } else {
      // After a server's error the connection is good; after anything else nobody knows.
      client.release(!(error instanceof pg.DatabaseError));
    }
    throw error;
  } finally {
    clearTimeout(expire);
  }
}

const WAY_LOST_STATES = new Set(['57P01', '57P02', '57P03', '57014', '53300', '40001', '40P01']);
/** Postgres tells a role that is not there and a wrong password by the same state. */
const ACCESS_WAY_OUT = 'correct DATABASE_URL, or create what it names with: npx holdfast db setup';
const ACCESS_STATES = new Set(['28000', '28P01', '3D000', '42501']);
const SCHEMA_STATES = new Set(['3F000', '42883', '42P01', '42703']);

function toFailure(error: unknown): Error {
  if (!(error instanceof pg.DatabaseError)) {
    return error instanceof WayLost
      ? error
      : new WayLost('the connection was lost', { cause: error });
  }
  const state = error.code ?? '';
  const detail = `${error.message} (SQLSTATE ${state})`;
  if (state.startsWith('08') || WAY_LOST_STATES.has(state)) {
    return new WayLost(detail, { cause: error });
  }
  if (ACCESS_STATES.has(state)) {
    return new HoldfastError('LEDGER_ACCESS_DENIED', `${detail}; ${ACCESS_WAY_OUT}`, {
      cause: error,
    });
  }
  if (SCHEMA_STATES.has(state)) {
    return new HoldfastError('LEDGER_SCHEMA_MISMATCH', detail, { cause: error });
  }
  return new HoldfastError('LEDGER_CONTRACT_BROKEN', detail, { cause: error });
}
