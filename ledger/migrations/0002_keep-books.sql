-- Keeping the books
-- -----------------
-- What every writing function is made of: the clock, the locks, the posting, the event.
-- None of these is callable by the application's role.
-- Functions that run in every step are plpgsql, also where one statement would do: it keeps its plan for
-- the session, and a function in plain SQL is planned again at every call (measured: half the time of a hold).

-- The one place where "now" is read, so that a test database can be told the time.
create function ledger.now() returns timestamptz
language plpgsql as $$
begin
  return (
    select clock_timestamp() + clock_offset from ledger.identity
  );
end;
$$;

-- False when the database runs on another cluster than the one the ledger was set up on.
create function ledger.is_trusted() returns boolean
language plpgsql as $$
begin
  return (
    select (select system_identifier from pg_control_system()) = system_identifier from ledger.identity
  );
end;
$$;

-- The separator cannot stand in an id: control characters are refused there.
create function ledger.operation_key_of(p_account_id text, p_operation_id text) returns text
language plpgsql stable as $$
begin
  return (
    select left(encode(sha256(convert_to(
      ledger_id::text || chr(31) || p_account_id || chr(31) || p_operation_id, 'UTF8')), 'hex'), 32)
    from ledger.identity
  );
end;
$$;

-- Every writer of an operation queues here, also before its row exists.
create function ledger.lock_operation(p_operation_key text) returns void
language sql volatile as $$
  select pg_advisory_xact_lock(hashtextextended(p_operation_key, 0));
$$;

-- Always sorted, so that two transactions over the same budgets cannot wait for each other.
create function ledger.lock_budgets(p_budget_ids text[]) returns void
language plpgsql as $$
begin
  perform 1 from ledger.budget where budget_id = any (p_budget_ids) order by budget_id for no key update;
end;
$$;

create function ledger.budgets_of_attempt(p_operation_key text, p_attempt_no integer) returns text[]
language plpgsql stable as $$
begin
  return (
    select coalesce(array_agg(distinct period.budget_id), '{}')
    from ledger.hold join ledger.budget_period period using (budget_period_id)
    where hold.operation_key = p_operation_key and hold.attempt_no = p_attempt_no
  );
end;
$$;

-- The twin of `computeOperationState` in domain/operation.ts.
create function ledger.compute_state(p_operation_key text) returns text
language plpgsql stable as $$
begin
  return (
    select case
      when bool_or(phase = 'unknown') then 'unknown'
      when bool_or(phase in ('sending', 'in_flight')) then 'dispatched'
      when bool_or(phase = 'not_sent') then
        case when bool_or(phase in ('free', 'charged')) then 'dispatched' else 'held' end
      when bool_or(phase = 'charged') then 'settled'
      else 'released'
    end
    from ledger.attempt where operation_key = p_operation_key
  );
end;
$$;

create function ledger.store_evidence(p_evidence jsonb, p_usage jsonb default null) returns bigint
language plpgsql as $$
declare
  v_evidence bigint;
begin
  insert into ledger.evidence (source, reference, digest, status, usage, recorded_at)
  values (p_evidence ->> 'source', p_evidence ->> 'reference', p_evidence ->> 'digest',
          p_evidence ->> 'status', p_usage, ledger.now())
  returning evidence_id into v_evidence;
  return v_evidence;
end;
$$;

-- One movement of money on one budget period: its lines, then the counters. Each posting sums to
-- zero: what is held or captured leaves `available`, and a limit comes from `limit`.
create function ledger.post(
  p_posting_id       bigint,
  p_budget_period_id bigint,
  p_limit_delta      bigint,
  p_held_delta       bigint,
  p_captured_delta   bigint
) returns void
language plpgsql as $$
declare
  v_period    ledger.budget_period;
  v_available bigint;
  v_now       timestamptz := ledger.now();
begin
  select * into strict v_period from ledger.budget_period
  where budget_period_id = p_budget_period_id for no key update;
  v_available := v_period.limit_amount - v_period.held_amount - v_period.captured_amount;

  insert into ledger.entry (posting_id, budget_period_id, entry_no, account, direction, amount, balance_after, recorded_at)
  select p_posting_id, p_budget_period_id, v_period.last_entry_no + row_number() over (order by line.line_no),
         line.account, sign(line.delta), abs(line.delta), line.balance, v_now
  from (values
    (1, 'limit',     -p_limit_delta,                                    -(v_period.limit_amount + p_limit_delta)),
    (2, 'available', p_limit_delta - p_held_delta - p_captured_delta,
        v_available + p_limit_delta - p_held_delta - p_captured_delta),
    (3, 'held',      p_held_delta,                                      v_period.held_amount + p_held_delta),
    (4, 'captured',  p_captured_delta,                                  v_period.captured_amount + p_captured_delta)
  ) as line (line_no, account, delta, balance)
  where line.delta <> 0;

  update ledger.budget_period
  set limit_amount    = limit_amount + p_limit_delta,
      held_amount     = held_amount + p_held_delta,
      captured_amount = captured_amount + p_captured_delta,
      last_entry_no   = (select coalesce(max(entry_no), 0) from ledger.entry
                         where budget_period_id = p_budget_period_id)
  where budget_period_id = p_budget_period_id;
end;
$$;

create function ledger.open_posting(
  p_kind text, p_operation_key text, p_attempt_no integer, p_evidence_id bigint
) returns bigint
language plpgsql as $$
declare
  v_posting bigint;
begin
  insert into ledger.posting (kind, operation_key, attempt_no, evidence_id, recorded_at)
  values (p_kind, p_operation_key, p_attempt_no, p_evidence_id, ledger.now())
  returning posting_id into v_posting;
  return v_posting;
end;
$$;

-- Tells people, once a kind and subject: an event of the operation, and a row that counters, log lines and search
-- attributes come from. `p_once` tells apart what may be raised again, such as a second restart.
create function ledger.raise_alert(
  p_kind text, p_operation_key text, p_attempt_no integer, p_detail jsonb, p_once text default ''
) returns void
language plpgsql as $$
begin
  insert into ledger.alert (alert_key, kind, operation_key, attempt_no, budget_id, detail, recorded_at)
  values (concat_ws('/', p_kind, coalesce(p_operation_key, p_detail ->> 'budgetId'), p_attempt_no, nullif(p_once, '')),
          p_kind, p_operation_key, p_attempt_no, p_detail ->> 'budgetId', p_detail, ledger.now())
  on conflict (alert_key) do nothing;
  if found and p_operation_key is not null then
    perform ledger.advance(p_operation_key, 'alert', p_attempt_no, null, jsonb_build_object('alert', p_kind) || p_detail);
  end if;
end;
$$;

-- Stores what happened and moves the operation to the state that its attempts say. Call it after
-- the attempts were changed, once a change.
create function ledger.advance(
  p_operation_key text, p_kind text, p_attempt_no integer, p_evidence_id bigint, p_detail jsonb
) returns void
language plpgsql as $$
declare
  v_operation ledger.operation;
  v_state     text := ledger.compute_state(p_operation_key);
  v_closed    boolean := v_state in ('settled', 'released');
  v_now       timestamptz := ledger.now();
  v_stopped   boolean;
begin
  select * into strict v_operation from ledger.operation where operation_key = p_operation_key for update;
  select bool_and(phase = 'withdrawn') into v_stopped from ledger.attempt where operation_key = p_operation_key;
  v_stopped := v_stopped and v_operation.cancel <> 'none';

  insert into ledger.operation_event
    (operation_key, event_no, kind, from_state, to_state, attempt_no, evidence_id, detail, recorded_at)
  values
    (p_operation_key, v_operation.last_event_no + 1, p_kind, v_operation.state, v_state, p_attempt_no,
     p_evidence_id, p_detail, v_now);

  update ledger.operation
  set state         = v_state,
      last_event_no = last_event_no + 1,
      closed_at     = case when v_closed then coalesce(closed_at, v_now) end,
      cancel        = case
                        when not v_closed or cancel not in ('requested', 'acknowledged', 'refused') then cancel
                        when v_stopped then 'confirmed_stopped'
                        -- Charged, and how the work ended was not observed: nobody guesses what became of the wish.
                        when v_state = 'settled' and execution_status not in ('completed', 'failed') then cancel
                        else 'not_honoured'
                      end,
      outcome       = case
                        when not v_closed then null
                        when v_state = 'settled' then 'settled'
                        when v_stopped then 'stopped'
                        when p_kind = 'next_refused' or outcome = 'refused' then 'refused'
                        else 'released'
                      end
  where operation_key = p_operation_key;
end;
$$;

-- Ends an attempt without a charge and gives its hold back, on evidence.
create function ledger.end_uncharged(
  p_attempt ledger.attempt, p_phase text, p_proof text, p_evidence_id bigint
) returns void
language plpgsql as $$
declare
  v_hold    ledger.hold;
  v_posting bigint;
begin
  perform ledger.lock_budgets(ledger.budgets_of_attempt(p_attempt.operation_key, p_attempt.attempt_no));
  v_posting := ledger.open_posting('hold_returned', p_attempt.operation_key, p_attempt.attempt_no, p_evidence_id);
  update ledger.attempt
  set phase = p_phase, proof = p_proof, end_evidence_id = p_evidence_id, ended_at = ledger.now(),
      unknown_since = null, next_question_due_at = null
  where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no;
  for v_hold in
    update ledger.hold set ended_at = ledger.now()
    where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no and ended_at is null
    returning *
  loop
    perform ledger.post(v_posting, v_hold.budget_period_id, 0, -v_hold.amount, 0);
  end loop;
end;
$$;

-- Adds a reason to the list, once a reason, with the time it first applied.
create function ledger.with_reason(p_reasons jsonb, p_reason text) returns jsonb
language plpgsql as $$
begin
  return (
    select case
      when p_reasons @> jsonb_build_array(jsonb_build_object('reason', p_reason)) then p_reasons
      else p_reasons || jsonb_build_object('reason', p_reason, 'at', ledger.now())
    end
  );
end;
$$;

-- Takes in what was observed of the work itself, and what that means for a wish to stop. Only a status says that it was
-- honoured; work that is seen going on afterwards was not stopped.
create function ledger.observe_execution(p_operation_key text, p_attempt_no integer, p_status text, p_evidence_id bigint) returns void
language plpgsql as $$
declare
  v_operation ledger.operation;
  v_ended     boolean := p_status in ('completed', 'cancelled', 'failed');
  v_regressed boolean;
  v_cancel    text;
begin
  select * into strict v_operation from ledger.operation where operation_key = p_operation_key for update;
  if p_status = v_operation.execution_status then
    return;
  end if;
  v_regressed := v_operation.execution_status in ('completed', 'cancelled', 'failed') and p_status <> 'unknown';
  v_cancel := case
    when p_status = 'cancelled' and v_operation.cancel in ('requested', 'acknowledged', 'refused') then 'confirmed_stopped'
    when p_status in ('completed', 'failed') and v_operation.cancel in ('requested', 'acknowledged', 'refused', 'confirmed_stopped')
      then 'not_honoured'
    when not v_ended and p_status <> 'unknown' and v_operation.cancel = 'confirmed_stopped' then 'not_honoured'
    else v_operation.cancel
  end;
  update ledger.operation set execution_status = p_status, cancel = v_cancel where operation_key = p_operation_key;
  if v_regressed then
    perform ledger.advance(p_operation_key, 'status_regressed', p_attempt_no, p_evidence_id,
      jsonb_build_object('from', v_operation.execution_status, 'to', p_status));
    perform ledger.raise_alert('status_regressed', p_operation_key, p_attempt_no,
      jsonb_build_object('from', v_operation.execution_status, 'to', p_status));
  end if;
  if v_cancel <> v_operation.cancel then
    perform ledger.advance(p_operation_key, 'cancel_' || v_cancel, p_attempt_no, p_evidence_id, jsonb_build_object('status', p_status));
    if v_cancel = 'not_honoured' then
      perform ledger.raise_alert('cancel_not_honoured', p_operation_key, p_attempt_no, jsonb_build_object('status', p_status));
    end if;
  end if;
end;
$$;
