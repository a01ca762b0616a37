// One list of what happened, by real time: the ledger's events, the provider's truth, and what the
// workflows tell.

import { asOwner } from '../play/raw-ledger.js';
import type { Play } from '../play/play.js';

export interface TimelineLine {
  readonly at: string;
  readonly who: 'ledger' | 'provider' | 'workflow';
  readonly what: string;
}

/** Never throws: what cannot be read is said in its place. */
export async function tellTimeline(play: Play): Promise<TimelineLine[]> {
  const parts = await Promise.all([
    said('ledger', () => fromLedger(play)),
    said('provider', () => fromProvider(play)),
    said('workflow', () => fromWorkflows(play)),
  ]);
  return parts.flat().sort((one, other) => one.at.localeCompare(other.at));
}

async function said(
  who: TimelineLine['who'],
  read: () => Promise<TimelineLine[]>,
): Promise<TimelineLine[]> {
  try {
    return await read();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return [{ at: new Date().toISOString(), who, what: `cannot be read: ${message}` }];
  }
}

function fromLedger(play: Play): Promise<TimelineLine[]> {
  const accounts = [...play.calls.values()].map(({ accountId }) => accountId);
  return asOwner(play.stage.databaseAdminUrl, async (client) => {
    const { rows } = await client.query<{ real_at: Date; what: string }>(
      `select real_at, operation_id || ' attempt ' || coalesce(attempt_no::text, '-') || ': ' || kind
              || case when from_state <> to_state then ', ' || from_state || ' to ' || to_state else '' end
              || case when detail = '{}' then '' else ' ' || detail::text end as what
       from ledger.event_view where account_id = any ($1)
       union all
       select last_at, operation_id || ': refused, ' || reason || ' ' || numbers::text
       from ledger.refusal_view where account_id = any ($1)`,
      [accounts],
    );
    return rows.map((row) => ({
      at: row.real_at.toISOString(),
      who: 'ledger' as const,
      what: row.what,
    }));
  });
}

async function fromProvider(play: Play): Promise<TimelineLine[]> {
  const { requests, charges, cancels } = await play.stage.provider.truth();
  const line = (at: string, what: string): TimelineLine => ({ at, who: 'provider', what });
  return [
    ...requests
      .filter(({ seq }) => seq > play.fromSeq)
      .map((request) =>
        line(
          request.realAt,
          `${request.model ?? '?'} ${request.key ?? 'no key'}: ${request.outcome}`,
        ),
      ),
    ...cancels.map((cancel) =>
      line(cancel.realAt, `${cancel.key ?? 'no key'}: asked to stop, answers ${cancel.answer}`),
    ),
    ...charges.map((charge) =>
      line(
        charge.realAt,
        `${charge.key ?? 'no key'}: charged ${charge.total} in all (${charge.cause})`,
      ),
    ),
  ];
}

async function fromWorkflows(play: Play): Promise<TimelineLine[]> {
  const calls = [...play.calls.values()];
  const told = await Promise.all(
    calls.map(async (call) => {
      const entries = await call.handle.timeline().catch(() => []);
      return entries.map((entry) => ({
        at: entry.at,
        who: 'workflow' as const,
        what: `${call.name}: ${entry.what}`,
      }));
    }),
  );
  return told.flat();
}
