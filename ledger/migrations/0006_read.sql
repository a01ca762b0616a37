-- Reading
-- -------
-- Views are the reading interface. Null is never printed as 0, and unknown stands beside every
-- total (P6): an attempt whose sender is overdue counts as unknown although nobody wrote it yet.

create function ledger.put_body(p_digest text, p_content text) returns void
language plpgsql security definer set search_path = ledger, pg_temp as $$
begin
  if p_digest <> 'sha256:' || encode(sha256(convert_to(p_content, 'UTF8')), 'hex') then
    raise exception 'the digest % is not that of the body', p_digest using errcode = 'LG001';
  end if;
  insert into ledger.body (digest, content, byte_count, recorded_at)
  values (p_digest, p_content, octet_length(p_content), ledger.now())
  on conflict (digest) do nothing;
end;
$$;

create function ledger.get_body(p_digest text) returns text
language sql stable security definer set search_path = ledger, pg_temp as $$
  select content from ledger.body where digest = p_digest;
$$;

create view ledger.attempt_view as
select attempt.operation_key, operation.account_id, operation.operation_id, attempt.attempt_no, attempt.attempt_key,
       attempt.route, attempt.provider, attempt.unit,
       case when attempt.phase = 'sending' and attempt.answer_due_at <= ledger.now() then 'unknown' else attempt.phase end as phase,
       attempt.amount, attempt.floor_amount, attempt.charged_amount,
       case when attempt.ended_at is null then attempt.amount else 0 end as held_amount,
       case when attempt.phase = 'unknown' then attempt.unknown_since
            when attempt.phase = 'sending' and attempt.answer_due_at <= ledger.now() then attempt.answer_due_at
            else attempt.unknown_since end as unknown_since,
       attempt.reasons, attempt.proof, attempt.priced_by, attempt.remote_id, attempt.has_trace, attempt.question_count,
       attempt.last_answer, attempt.next_question_due_at, attempt.dispatch_before, attempt.send_until,
       attempt.answer_due_at, attempt.admitted_at, attempt.ended_at,
       evidence.source as evidence_source, evidence.reference as evidence_reference, evidence.usage
from ledger.attempt
join ledger.operation using (operation_key)
left join ledger.evidence on evidence.evidence_id = attempt.end_evidence_id;

-- Whether somebody must look. A wait needs nobody once it is over; what was charged or done otherwise than stated does.
create function ledger.needs_operator(p_operation_key text) returns boolean
language plpgsql stable security definer set search_path = ledger, pg_temp as $$
begin
  return (
    select exists (
      select 1 from ledger.alert join ledger.operation using (operation_key)
      where alert.operation_key = p_operation_key
        and (operation.closed_at is null or alert.kind in ('overrun', 'charge_after_end', 'cancel_not_honoured')))
  );
end;
$$;

create view ledger.operation_view as
select operation.operation_key, operation.account_id, operation.operation_id, operation.kind, operation.workflow_id,
       operation.task_id, operation.outcome, operation.cancel, operation.execution_status, operation.created_at,
       operation.closed_at, operation.request_digest, operation.answer_digest, operation.cancel_requested_at,
       operation.restarted_at,
       case when operation.state = 'dispatched' and bool_or(attempt.phase = 'unknown') then 'unknown' else operation.state end as state,
       (array_agg(attempt.route order by attempt.attempt_no desc))[1] as route,
       (array_agg(attempt.provider order by attempt.attempt_no desc))[1] as provider,
       min(attempt.unit) as unit,
       count(*)::integer as attempt_count,
       sum(attempt.held_amount)::bigint as held_amount,
       sum(attempt.charged_amount)::bigint as charged_amount,
       min(attempt.unknown_since) as unknown_since,
       min(attempt.next_question_due_at) as next_question_due_at,
       (array_agg(attempt.remote_id order by attempt.attempt_no desc))[1] as remote_id,
       (array_agg(attempt.last_answer order by attempt.attempt_no desc))[1] as last_answer,
       ledger.needs_operator(operation.operation_key) as needs_operator,
       ledger.now() as read_at
from ledger.operation
join ledger.attempt_view attempt using (operation_key)
group by operation.operation_key;

create view ledger.budget_view as
select budget.budget_id, budget.unit, budget.period_kind, period.period_key, budget.limit_amount, budget.frozen_at,
       coalesce(period.captured_amount, 0) as captured_amount,
       coalesce(period.held_amount, 0) as held_amount,
       coalesce(period.overrun_amount, 0) as overrun_amount,
       coalesce(unknown.amount, 0)::bigint as unknown_amount,
       coalesce(unknown.attempt_count, 0)::integer as unknown_count,
       unknown.oldest as unknown_oldest,
       budget.limit_amount - coalesce(period.captured_amount, 0) - coalesce(period.held_amount, 0) as available_amount,
       (select coalesce(jsonb_agg(jsonb_build_object('kind', kind, 'value', value) order by kind, value), '[]')
        from ledger.budget_scope scope where scope.budget_id = budget.budget_id) as scopes
from ledger.budget
left join ledger.budget_period period using (budget_id)
left join lateral (
  select sum(hold.amount) as amount, count(*) as attempt_count, min(attempt.unknown_since) as oldest
  from ledger.hold join ledger.attempt_view attempt using (operation_key, attempt_no)
  where hold.budget_period_id = period.budget_period_id and hold.ended_at is null and attempt.phase = 'unknown'
) unknown on true;

create view ledger.event_view as
select event.operation_key, operation.account_id, operation.operation_id, event.event_no, event.kind, event.from_state,
       event.to_state, event.attempt_no, event.detail, event.recorded_at, event.real_at,
       evidence.source as evidence_source, evidence.reference as evidence_reference, evidence.status as evidence_status
from ledger.operation_event event
join ledger.operation using (operation_key)
left join ledger.evidence using (evidence_id);

create view ledger.alert_view as
select alert.alert_id, alert.kind, alert.operation_key, operation.account_id, operation.operation_id, alert.attempt_no,
       alert.budget_id, alert.detail, alert.recorded_at, alert.real_at
from ledger.alert left join ledger.operation using (operation_key);

create view ledger.refusal_view as
select operation_key, account_id, operation_id, route, reason, nullif(budget_id, '') as budget_id, numbers, refusal_count,
       first_at, last_at, last_real_at
from ledger.refusal;

create view ledger.entry_view as
select entry.entry_id, entry.random_id, entry.entry_no, entry.budget_period_id, period.budget_id, period.period_key, posting.kind as posting_kind,
       entry.posting_id, posting.operation_key, posting.attempt_no, entry.account, entry.direction, entry.amount, entry.balance_after,
       entry.recorded_at, entry.real_at
from ledger.entry
join ledger.posting using (posting_id)
join ledger.budget_period period using (budget_period_id);

create view ledger.price_view as
select version.route, version.price_version_id, version.unit, version.valid_from, price.dimension, price.rate_amount, price.per_count,
       version.price_version_id = ledger.price_version_of(version.route) as is_current
from ledger.price_version version join ledger.price using (price_version_id);

create view ledger.account_view as
select account.account_id, account.team, account.organisation, account.created_at,
       ledger.budgets_of_request(account.account_id, '{}') as budget_ids
from ledger.account;

create view ledger.unmatched_report_view as
select unmatched_report_id, provider, attempt_key, report, recorded_at from ledger.unmatched_report;

create view ledger.identity_view as
select ledger_id, is_test, clock_offset, ledger.is_trusted() as is_trusted, created_at, ledger.now() as now from ledger.identity;

-- Where an operation stands, as one JSON value: what every writing function answers and what a
-- supervisor loads before it acts. Null when there is none.
create function ledger.snapshot(p_operation_key text) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
begin
  return (
    select jsonb_build_object(
      'operationKey', operation.operation_key, 'accountId', operation.account_id, 'operationId', operation.operation_id,
      'kind', operation.kind, 'state', operation.state, 'outcome', operation.outcome, 'cancel', operation.cancel,
      'executionStatus', operation.execution_status, 'answerRef', operation.answer_digest,
      'cancelSentCount', operation.cancel_sent_count, 'cancelLastAnswer', operation.cancel_last_answer,
      'taskId', operation.task_id, 'workflowId', operation.workflow_id,
      'needsOperator', ledger.needs_operator(operation.operation_key),
      'alerts', (select coalesce(jsonb_agg(jsonb_build_object(
                   'kind', alert.kind, 'attemptNo', alert.attempt_no, 'at', alert.recorded_at, 'detail', alert.detail,
                   'isNew', alert.raised_in = pg_current_xact_id_if_assigned()) order by alert.alert_id), '[]')
                 from ledger.alert where alert.operation_key = operation.operation_key),
      'budgetIds', (select coalesce(jsonb_agg(distinct period.budget_id), '[]')
                    from ledger.hold join ledger.budget_period period using (budget_period_id)
                    where hold.operation_key = operation.operation_key),
      'chain', operation.chain, 'fallbackProblem', ledger.next_problem(operation),
      'attempts', (
        select jsonb_agg(jsonb_build_object(
          'attemptNo', attempt.attempt_no, 'attemptKey', attempt.attempt_key, 'route', attempt.route,
          'provider', attempt.provider, 'phase', attempt.phase, 'unit', attempt.unit,
          'heldAmount', case when attempt.ended_at is null then attempt.amount else 0 end::text,
          'chargedAmount', attempt.charged_amount::text, 'floorAmount', attempt.floor_amount::text,
          'boundAmount', attempt.amount::text,
          'proof', attempt.proof, 'reasons', attempt.reasons, 'unknownSince', attempt.unknown_since,
          'unknownMs', floor(extract(epoch from ledger.now() - attempt.unknown_since) * 1000)::bigint,
          'remoteId', attempt.remote_id, 'questionCount', attempt.question_count, 'lastAnswer', attempt.last_answer,
          'nextQuestionDueAt', attempt.next_question_due_at,
          'dueInMs', floor(extract(epoch from attempt.next_question_due_at - ledger.now()) * 1000)::bigint,
          'dispatchBeforePassed', attempt.dispatch_before <= ledger.now(),
          'sentMs', floor(extract(epoch from ledger.now() - attempt.send_until) * 1000)::bigint,
          'timings', attempt.offer -> 'timings', 'pricedBy', attempt.priced_by) order by attempt.attempt_no)
        from ledger.attempt where attempt.operation_key = operation.operation_key),
      'refusal', (select numbers from ledger.refusal
                  where refusal.operation_key = operation.operation_key order by last_at desc limit 1))
    from ledger.operation where operation.operation_key = p_operation_key
  );
end;
$$;

-- The snapshot by the caller's own id.
create function ledger.read_operation(p_account_id text, p_operation_id text) returns jsonb
language sql volatile security definer set search_path = ledger, pg_temp as $$
  select ledger.snapshot(ledger.operation_key_of(p_account_id, p_operation_id));
$$;
