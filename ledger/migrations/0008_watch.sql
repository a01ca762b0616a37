-- Watching
-- --------
-- What a scrape reads, as sums that stay cheap however long the ledger grows: what is open is found
-- through the open attempts and their index (an operation is open exactly as long as one of its
-- attempts is), and what was captured stands in the counters of the budgets. An attempt whose sender
-- is overdue counts as unknown although nobody wrote it yet (P6).

create view ledger.open_attempt_view as
select attempt.operation_key, attempt.attempt_no, attempt.provider,
       attempt.phase = 'unknown' or (attempt.phase = 'sending' and attempt.answer_due_at <= clock.read_at) as is_unknown,
       case when attempt.phase = 'unknown' then attempt.unknown_since
            when attempt.phase = 'sending' and attempt.answer_due_at <= clock.read_at then attempt.answer_due_at end as unknown_since,
       clock.read_at
from ledger.attempt
cross join (select ledger.now() as read_at) clock
-- A check of the table: not null exactly where `ended_at` is null. The index is on this one.
where attempt.next_question_due_at is not null;

-- An operation of several open attempts counts once, for the provider of its newest open one.
create view ledger.open_operation_view as
select operation.operation_key, operation.cancel,
       case when bool_or(open.is_unknown) then 'unknown' else operation.state end as state,
       (array_agg(open.provider order by open.attempt_no desc))[1] as provider
from ledger.open_attempt_view open
join ledger.operation using (operation_key)
group by operation.operation_key;

create view ledger.open_by_state_view as
select state, provider, count(*)::integer as operation_count
from ledger.open_operation_view group by state, provider;

create view ledger.open_by_cancel_view as
select cancel, count(*)::integer as operation_count
from ledger.open_operation_view where cancel <> 'none' group by cancel;

create view ledger.held_by_provider_view as
select period.budget_id, open.provider,
       sum(hold.amount)::bigint as held_amount,
       coalesce(sum(hold.amount) filter (where open.is_unknown), 0)::bigint as unknown_amount
from ledger.open_attempt_view open
join ledger.hold on hold.operation_key = open.operation_key and hold.attempt_no = open.attempt_no and hold.ended_at is null
join ledger.budget_period period using (budget_period_id)
group by period.budget_id, open.provider;

create view ledger.unknown_by_provider_view as
select provider,
       extract(epoch from min(read_at) - min(unknown_since))::double precision as oldest_age_s
from ledger.open_attempt_view where is_unknown group by provider;

-- Captured and overrun over all periods, since a counter does not start anew with a month; limit and
-- available of the period that runs, and null where there is no limit.
create view ledger.budget_watch_view as
select budget.budget_id, budget.unit, budget.created_at, budget.limit_amount,
       budget.limit_amount - coalesce(total.running_amount, 0)::bigint as available_amount,
       coalesce(total.captured_amount, 0)::bigint as captured_amount,
       coalesce(total.overrun_amount, 0)::bigint as overrun_amount
from ledger.budget
cross join (select ledger.now() as read_at) clock
left join lateral (
  select sum(period.captured_amount) as captured_amount, sum(period.overrun_amount) as overrun_amount,
         sum(period.captured_amount + period.held_amount)
           filter (where coalesce(period.starts_at <= clock.read_at, true)
                     and coalesce(period.ends_at > clock.read_at, true)) as running_amount
  from ledger.budget_period period where period.budget_id = budget.budget_id
) total on true;
