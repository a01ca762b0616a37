// How many holds a second the ledger places, beside a bare single-row update by the same driver.

import pg from 'pg';
import { DEFAULT_TIMINGS } from '../domain/route.js';
import { placeHold } from '../ledger/admit.js';
import { digestOf } from '../ledger/bodies.js';
import { measure, printRow } from './measure.js';
import { openStand, ROUTE } from './stand.js';

const ROUND_MS = 3_000;

export async function benchAdmission(): Promise<void> {
  const stand = await openStand(100, 64);
  const pool = new pg.Pool({ connectionString: stand.devstack.postgres.adminUrl, max: 64 });
  await pool.query(
    'create table if not exists counter (id integer primary key, value bigint not null)',
  );
  await pool.query(
    'insert into counter select id, 0 from generate_series(0, 99) id on conflict do nothing',
  );
  let run = 0;
  for (const budgets of [1, 100]) {
    for (const callers of [1, 8, 64]) {
      run += 1;
      const bare = await measure(callers, ROUND_MS, (no) =>
        pool.query({
          name: 'bare',
          text: 'update counter set value = value + 1 where id = $1 returning value',
          values: [no % budgets],
        }),
      );
      const holds = await measure(callers, ROUND_MS, (no) =>
        place(stand, `${run}-${no}`, no % budgets),
      );
      printRow({
        bench: 'admission',
        budgets,
        callers,
        holdsPerSecond: holds.perSecond,
        p50Ms: holds.p50Ms,
        p99Ms: holds.p99Ms,
        barePerSecond: bare.perSecond,
        ratio: Math.round((holds.perSecond / bare.perSecond) * 100) / 100,
      });
    }
  }
  await pool.end();
  await stand.close();
}

const REQUEST = '{"messages":[]}';

async function place(
  stand: Awaited<ReturnType<typeof openStand>>,
  operation: string,
  account: number,
): Promise<void> {
  const answer = await placeHold(stand.ledger, {
    account: `account-${account}`,
    operation,
    kind: 'call',
    workflow: operation,
    ask: 'bench',
    terms: { maxTokens: 1 },
    scopes: {},
    chain: {
      routes: [
        {
          route: ROUTE,
          provider: 'metered',
          model: ROUTE,
          bound: { request: 1, input_tokens: 10, output_tokens: 1 },
          paidAttemptsPerSend: 1,
          timings: DEFAULT_TIMINGS,
        },
      ],
      fallbackWhileUnknown: 'wait',
      fallbackHold: 'each',
      sameRouteAttempts: 1,
    },
    requestDigest: digestOf(REQUEST),
    requestText: REQUEST,
  });
  if (answer.status !== 'placed') throw new Error(`not placed: ${answer.status}`);
}
