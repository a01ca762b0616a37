-- Setting up, and checking
-- ------------------------
-- Budgets, accounts, prices, the clock of a test database, the roles, and the conservation check.

-- Gives this ledger its identity, once. Answers whether it did so now.
create function ledger.set_up(p_is_test boolean) returns boolean
language plpgsql as $$
begin
  insert into ledger.identity (system_identifier, is_test)
  select system_identifier, p_is_test from pg_control_system()
  on conflict do nothing;
  return found;
end;
$$;

create function ledger.move_clock(p_offset interval) returns void
language plpgsql as $$
begin
  update ledger.identity set clock_offset = clock_offset + p_offset;
end;
$$;

-- Status `created`, `exists`, or `exists_otherwise`.
create function ledger.create_account(p_account_id text, p_team text, p_organisation text) returns text
language plpgsql security definer set search_path = ledger, pg_temp as $$
begin
  insert into ledger.account (account_id, team, organisation, created_at)
  values (p_account_id, p_team, p_organisation, ledger.now())
  on conflict do nothing;
  if found then
    return 'created';
  end if;
  return case when exists (select 1 from ledger.account where account_id = p_account_id
                             and team is not distinct from p_team and organisation is not distinct from p_organisation)
    then 'exists' else 'exists_otherwise' end;
end;
$$;

-- Creates a budget with its first scopes. `p_limit_amount` null is no limit. Status as above, or
-- `account_not_found`: a budget over an account that does not exist would limit nobody.
create function ledger.create_budget(
  p_budget_id text, p_unit text, p_limit_amount bigint, p_period_kind text, p_time_zone text, p_scopes jsonb
) returns text
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_budget ledger.budget;
begin
  if p_period_kind <> 'none' then
    raise exception 'period kind % is not supported yet, use none', p_period_kind using errcode = 'LG001';
  end if;
  if exists (select 1 from jsonb_array_elements(p_scopes) scope
             where scope ->> 'kind' = 'account'
               and not exists (select 1 from ledger.account where account_id = scope ->> 'value')) then
    return 'account_not_found';
  end if;
  insert into ledger.budget (budget_id, unit, limit_amount, period_kind, time_zone, created_at)
  values (p_budget_id, p_unit, p_limit_amount, p_period_kind, p_time_zone, ledger.now())
  on conflict do nothing
  returning * into v_budget;
  if v_budget.budget_id is null then
    select * into v_budget from ledger.budget where budget_id = p_budget_id;
    return case when v_budget.unit = p_unit and v_budget.limit_amount is not distinct from p_limit_amount
      and v_budget.period_kind = p_period_kind then 'exists' else 'exists_otherwise' end;
  end if;
  insert into ledger.budget_scope (kind, value, budget_id)
  select scope ->> 'kind', scope ->> 'value', p_budget_id from jsonb_array_elements(p_scopes) scope
  on conflict do nothing;
  perform ledger.period_of(v_budget);
  return 'created';
end;
$$;

-- The budget of one task of one account, once. Status `created`, `exists`, or `exists_otherwise`: with another limit or
-- unit, or of somebody else's task.
create function ledger.open_task_budget(p_account_id text, p_task_id text, p_unit text, p_limit_amount bigint) returns text
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_scope  text := p_account_id || '/' || p_task_id;
  v_status text;
begin
  v_status := ledger.create_budget('task/' || p_task_id, p_unit, p_limit_amount, 'none', 'UTC',
    jsonb_build_array(jsonb_build_object('kind', 'task', 'value', v_scope)));
  if v_status = 'exists' and not exists (
    select 1 from ledger.budget_scope where budget_id = 'task/' || p_task_id and kind = 'task' and value = v_scope) then
    return 'exists_otherwise';
  end if;
  return v_status;
end;
$$;

create function ledger.add_scope(p_budget_id text, p_kind text, p_value text) returns text
language plpgsql security definer set search_path = ledger, pg_temp as $$
begin
  if not exists (select 1 from ledger.budget where budget_id = p_budget_id) then
    return 'budget_not_found';
  end if;
  insert into ledger.budget_scope (kind, value, budget_id) values (p_kind, p_value, p_budget_id) on conflict do nothing;
  return case when found then 'created' else 'exists' end;
end;
$$;

-- A new version of what a route costs: every billable dimension with its rate, zero included.
-- `exists` when the version in force says the same already.
create function ledger.set_price(p_route text, p_unit text, p_rates jsonb) returns text
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_version bigint;
  v_current jsonb;
begin
  perform pg_advisory_xact_lock(hashtextextended('price/' || p_route, 0));
  select jsonb_object_agg(dimension, jsonb_build_object('rateAmount', rate_amount::text, 'perCount', per_count))
  into v_current
  from ledger.price_view where route = p_route and is_current and unit = p_unit;
  if v_current = p_rates then
    return 'exists';
  end if;
  insert into ledger.price_version (route, unit, valid_from, recorded_at)
  values (p_route, p_unit, ledger.now(), ledger.now()) returning price_version_id into v_version;
  insert into ledger.price (price_version_id, dimension, rate_amount, per_count)
  select v_version, key, (value ->> 'rateAmount')::bigint, (value ->> 'perCount')::bigint from jsonb_each(p_rates);
  return 'created';
end;
$$;

-- Takes effect at the next admission and touches no running operation; its audit row is in the same
-- transaction. Status `frozen`, `unfrozen` or `budget_not_found`.
create function ledger.set_budget_frozen(p_budget_id text, p_is_frozen boolean, p_actor text, p_reason text) returns text
language plpgsql security definer set search_path = ledger, pg_temp as $$
begin
  perform ledger.lock_budgets(array[p_budget_id]);
  update ledger.budget set frozen_at = case when p_is_frozen then coalesce(frozen_at, ledger.now()) end
  where budget_id = p_budget_id;
  if not found then
    return 'budget_not_found';
  end if;
  insert into ledger.operator_action (action, subject, actor, reason, detail, recorded_at)
  values (case when p_is_frozen then 'freeze' else 'unfreeze' end, p_budget_id, p_actor, p_reason, '{}', ledger.now());
  return case when p_is_frozen then 'frozen' else 'unfrozen' end;
end;
$$;

-- The conservation check: one row a broken rule, none when the books are whole.
create function ledger.check() returns table (problem text, subject text, detail text)
language sql volatile security definer set search_path = ledger, pg_temp as $$
  select 'a posting does not sum to zero', posting_id::text, sum(direction * amount)::text
  from ledger.entry group by posting_id, budget_period_id having sum(direction * amount) <> 0
  union all
  select 'a counter differs from the sum of its entries', period.budget_id || ' ' || counter.account,
         counter.balance || ' instead of ' || coalesce(sum(entry.direction * entry.amount), 0)
  from ledger.budget_period period
  cross join lateral (values
    ('limit', -period.limit_amount), ('held', period.held_amount), ('captured', period.captured_amount),
    ('available', period.limit_amount - period.held_amount - period.captured_amount)) counter (account, balance)
  left join ledger.entry on entry.budget_period_id = period.budget_period_id and entry.account = counter.account
  group by period.budget_period_id, period.budget_id, counter.account, counter.balance
  having counter.balance <> coalesce(sum(entry.direction * entry.amount), 0)
  union all
  select 'an entry sequence has a gap', budget_period_id::text, max(entry_no) || ' for ' || count(*)
  from ledger.entry group by budget_period_id having max(entry_no) <> count(*)
  union all
  select 'a balance does not follow from the entry before', chain.entry_id::text, chain.balance_after::text
  from (select entry_id, balance_after, direction * amount as delta,
               coalesce(lag(balance_after) over (partition by budget_period_id, account order by entry_no), 0) as before
        from ledger.entry) chain
  where chain.balance_after <> chain.before + chain.delta
  union all
  select 'the held amount is not the sum of the open holds', period.budget_id, period.held_amount || ' instead of ' || coalesce(sum(hold.amount), 0)
  from ledger.budget_period period
  left join ledger.hold on hold.budget_period_id = period.budget_period_id and hold.ended_at is null
  group by period.budget_period_id, period.budget_id, period.held_amount having period.held_amount <> coalesce(sum(hold.amount), 0)
  union all
  select 'the captured amount is not the sum of the captures', period.budget_id, period.captured_amount || ' instead of ' || coalesce(sum(hold.captured_amount), 0)
  from ledger.budget_period period
  left join ledger.hold on hold.budget_period_id = period.budget_period_id
  group by period.budget_period_id, period.budget_id, period.captured_amount
  having period.captured_amount <> coalesce(sum(hold.captured_amount), 0)
  union all
  select 'an attempt and its holds disagree on being ended', attempt.attempt_key, attempt.phase
  from ledger.attempt left join ledger.hold using (operation_key, attempt_no)
  group by attempt.operation_key, attempt.attempt_no
  having count(hold.hold_id) = 0 or bool_or((hold.ended_at is null) <> (attempt.ended_at is null))
  union all
  select 'an ended attempt does not have exactly one end posting', attempt.attempt_key, count(posting.posting_id)::text
  from ledger.attempt
  left join ledger.posting on posting.operation_key = attempt.operation_key and posting.attempt_no = attempt.attempt_no
    and posting.kind in ('hold_returned', 'hold_captured')
  group by attempt.operation_key, attempt.attempt_no
  having count(posting.posting_id) <> case when attempt.ended_at is null then 0 else 1 end
  union all
  select 'a state is not what its attempts say', operation_key, state || ' instead of ' || ledger.compute_state(operation_key)
  from ledger.operation where state <> ledger.compute_state(operation_key)
  union all
  select 'an event chain is broken', operation.operation_key, operation.last_event_no || ' for ' || count(event.event_no)
  from ledger.operation left join ledger.operation_event event using (operation_key)
  group by operation.operation_key
  having operation.last_event_no <> count(event.event_no)
      or operation.state <> (array_agg(event.to_state order by event.event_no desc))[1];
$$;

-- Open operations whose next question is overdue, the oldest first: whoever should ask is gone or stuck.
create function ledger.overdue_operations(p_grace_ms bigint, p_count_max integer) returns table (
  operation_key text, account_id text, operation_id text, kind text, workflow_id text, overdue_ms bigint,
  held_amount bigint, unit text)
language plpgsql volatile security definer set search_path = ledger, pg_temp as $$
begin
  return query
    select operation.operation_key, operation.account_id, operation.operation_id, operation.kind, operation.workflow_id,
           floor(extract(epoch from ledger.now() - min(attempt.next_question_due_at)) * 1000)::bigint,
           sum(attempt.amount)::bigint, min(attempt.unit)
    from ledger.attempt join ledger.operation using (operation_key)
    where attempt.next_question_due_at < ledger.now() - p_grace_ms * interval '1 millisecond'
    group by operation.operation_key
    order by min(attempt.next_question_due_at)
    limit p_count_max;
end;
$$;

-- The right to start a supervisor again: once for as long as its questions stay overdue, at most `per_minute` of all.
-- Status `claimed`, `not_overdue`, `claimed_before` or `too_many`. A claim is an alert, whatever becomes of the start.
create function ledger.claim_restart(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := p ->> 'operation_key';
  v_operation ledger.operation;
  v_due       timestamptz;
  v_recent    integer;
begin
  -- One limit for all sweepers, so they queue here.
  perform pg_advisory_xact_lock(hashtextextended('ledger.claim_restart', 0));
  perform ledger.lock_operation(v_key);
  select * into v_operation from ledger.operation where operation_key = v_key for update;
  select min(next_question_due_at) into v_due from ledger.attempt where operation_key = v_key and ended_at is null;
  if v_due is null or v_due > ledger.now() then
    return jsonb_build_object('status', 'not_overdue');
  end if;
  if v_operation.restarted_at >= greatest(v_due, ledger.now() - (p ->> 'again_after_ms')::bigint * interval '1 millisecond') then
    return jsonb_build_object('status', 'claimed_before');
  end if;
  select count(*) into v_recent from ledger.operation where restarted_at > ledger.now() - interval '1 minute';
  if v_recent >= (p ->> 'per_minute')::integer then
    return jsonb_build_object('status', 'too_many');
  end if;
  update ledger.operation set restarted_at = ledger.now() where operation_key = v_key;
  perform ledger.raise_alert(p ->> 'kind', v_key, null, jsonb_build_object('why', p ->> 'why'), ledger.now()::text);
  return jsonb_build_object('status', 'claimed', 'snapshot', ledger.snapshot(v_key));
end;
$$;

-- Somebody has paused the supervisor of an operation whose question is overdue: it is told, and left alone.
create function ledger.tell_paused(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
begin
  perform ledger.lock_operation(p ->> 'operation_key');
  perform ledger.raise_alert('supervisor_paused', p ->> 'operation_key', null, '{}');
  return jsonb_build_object('status', 'told');
end;
$$;

-- What the application's role may do: execute the functions below and select from the views.
create function ledger.grant_application(p_role text) returns void
language plpgsql as $$
declare
  v_function text;
  v_view     text;
begin
  execute format('grant usage on schema ledger to %I', p_role);
  foreach v_function in array array[
    'place_hold', 'take_fence', 'replay_terms', 'give_up', 'withdraw', 'end_ask', 'request_cancel', 'record_cancel_answer',
    'record_observation', 'overdue_operations', 'claim_restart', 'tell_paused', 'needs_operator',
    'mark_unknown', 'next_attempt', 'record_charge_report', 'put_body', 'get_body', 'read_operation', 'snapshot', 'create_account', 'create_budget', 'open_task_budget', 'compare_terms',
    'add_scope', 'set_price', 'set_budget_frozen', 'check', 'now', 'is_trusted', 'price_version_of', 'budgets_of_request']
  loop
    execute format('grant execute on function %s to %I', 'ledger.' || v_function::text || ledger.signature_of(v_function), p_role);
  end loop;
  for v_view in select viewname from pg_views where schemaname = 'ledger' loop
    execute format('grant select on ledger.%I to %I', v_view, p_role);
  end loop;
end;
$$;

create function ledger.signature_of(p_function text) returns text
language sql stable as $$
  select '(' || pg_get_function_identity_arguments(oid) || ')' from pg_proc
  where pronamespace = 'ledger'::regnamespace and proname = p_function;
$$;

-- Functions that views call run with the reader's rights: they read through the owner's instead.
alter function ledger.now() security definer set search_path = ledger, pg_temp;
alter function ledger.is_trusted() security definer set search_path = ledger, pg_temp;
alter function ledger.price_version_of(text) security definer set search_path = ledger, pg_temp;
alter function ledger.budgets_of_request(text, jsonb) security definer set search_path = ledger, pg_temp;

revoke execute on all functions in schema ledger from public;
