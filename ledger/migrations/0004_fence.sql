-- The fence
-- ---------
-- One transaction decides who may send (P4). Whoever does not win it sends nothing and asks.

-- Why an attempt may not be sent now; null when it may.
create function ledger.fence_problem(p_operation ledger.operation, p_attempt ledger.attempt, p_ask_id text) returns text
language plpgsql as $$
begin
  return (
    select case
      when p_attempt.phase in ('withdrawn', 'free', 'charged') then 'ended'
      when p_attempt.phase <> 'not_sent' then 'taken'
      when p_operation.cancel <> 'none' then 'cancel_requested'
      when exists (select 1 from ledger.attempt where operation_key = p_operation.operation_key and phase = 'charged')
        then 'charged'
      when exists (select 1 from ledger.ask
                   where operation_key = p_operation.operation_key and ask_id = p_ask_id and ended_at is not null)
        then 'ask_ended'
      when p_attempt.dispatch_before <= ledger.now() then 'too_late'
    end
  );
end;
$$;

-- Takes the fence for one sender. Status `taken`: go on; `own`: this claim took it before (a COMMIT
-- answer was lost); `taken_by_other`, `refused` with `reason`, `ledger_untrusted`: send nothing.
-- With `taken` and `own` come the offer, the request's text and what is left of the time to send.
create function ledger.take_fence(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := p ->> 'operation_key';
  v_operation ledger.operation;
  v_attempt   ledger.attempt;
  v_problem   text;
  v_now       timestamptz;
  v_due       timestamptz;
  v_status    text := 'taken';
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(v_key);
  select * into v_operation from ledger.operation where operation_key = v_key for update;
  select * into v_attempt from ledger.attempt
  where operation_key = v_key and attempt_no = (p ->> 'attempt_no')::integer for update;
  if not found then
    return jsonb_build_object('status', 'refused', 'reason', 'not_found');
  end if;
  v_now := ledger.now();

  if v_attempt.phase = 'sending' and v_attempt.claim = (p ->> 'claim')::uuid then
    v_status := 'own';
  else
    v_problem := ledger.fence_problem(v_operation, v_attempt, p ->> 'ask');
    if v_problem is not null then
      return jsonb_build_object(
        'status', case v_problem when 'taken' then 'taken_by_other' else 'refused' end,
        'reason', v_problem, 'snapshot', ledger.snapshot(v_key));
    end if;
    v_due := v_now + interval '5 seconds'
      + (v_attempt.offer -> 'timings' ->> 'dispatchLimitMs')::bigint * interval '1 millisecond';
    update ledger.attempt
    set phase = 'sending', claim = (p ->> 'claim')::uuid, send_until = v_now + interval '5 seconds',
        answer_due_at = v_due, next_question_due_at = v_due
    where operation_key = v_key and attempt_no = v_attempt.attempt_no
    returning * into v_attempt;
    perform ledger.advance(v_key, 'fence_taken', v_attempt.attempt_no, null, jsonb_build_object('route', v_attempt.route));
  end if;
  return jsonb_build_object(
    'status', v_status, 'offer', v_attempt.offer, 'attempt_key', v_attempt.attempt_key, 'unit', v_attempt.unit,
    'request_text', (select content from ledger.body where digest = v_operation.request_digest),
    'send_ms_left', floor(extract(epoch from v_attempt.send_until - v_now) * 1000)::bigint);
end;
$$;

-- Why an attempt may not be repeated under its key now; null when it may. A repeat can be the first that the provider
-- hears, so whatever forbids a send forbids it, and it stays far inside the time for which keys are kept there.
create function ledger.replay_problem(
  p_operation ledger.operation, p_attempt ledger.attempt, p_window_ms bigint
) returns text
language plpgsql as $$
begin
  return (
    select case
      when p_attempt.ended_at is not null then 'ended'
      when p_attempt.send_until is null then 'not_sent'
      when p_operation.cancel <> 'none' then 'cancel_requested'
      when exists (select 1 from ledger.attempt where operation_key = p_operation.operation_key and phase = 'charged')
        then 'charged'
      when exists (select 1 from ledger.ask
                   where operation_key = p_operation.operation_key and ask_id = p_attempt.ask_id and ended_at is not null)
        then 'ask_ended'
      when p_attempt.answer_due_at > ledger.now() then 'not_due'
      when p_attempt.send_until - interval '5 seconds' + p_window_ms * interval '0.5 millisecond' <= ledger.now()
        then 'window_passed'
      when not exists (select 1 from ledger.body where digest = p_operation.request_digest) then 'request_missing'
    end
  );
end;
$$;

-- What repeating an attempt under its key takes, where the provider documents for how long it knows a key
-- (`window_ms`). Status `permitted`, with the offer and the request's text; `refused` with `reason`;
-- `ledger_untrusted`. It places no hold. That it was permitted is stored before anything can leave.
create function ledger.replay_terms(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := p ->> 'operation_key';
  v_operation ledger.operation;
  v_attempt   ledger.attempt;
  v_problem   text;
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(v_key);
  select * into v_operation from ledger.operation where operation_key = v_key for update;
  select * into v_attempt from ledger.attempt
  where operation_key = v_key and attempt_no = (p ->> 'attempt_no')::integer for update;
  if not found then
    return jsonb_build_object('status', 'refused', 'reason', 'not_found');
  end if;
  v_problem := ledger.replay_problem(v_operation, v_attempt, (p ->> 'window_ms')::bigint);
  if v_problem is not null then
    return jsonb_build_object('status', 'refused', 'reason', v_problem);
  end if;
  if v_attempt.replayed_at is null then
    update ledger.attempt set replayed_at = ledger.now()
    where operation_key = v_key and attempt_no = v_attempt.attempt_no;
    -- Once: the repeats after it are counted as the questions that they are.
    perform ledger.advance(v_key, 'replayed', v_attempt.attempt_no, null, jsonb_build_object('route', v_attempt.route));
  end if;
  return jsonb_build_object(
    'status', 'permitted', 'offer', v_attempt.offer, 'attempt_key', v_attempt.attempt_key, 'unit', v_attempt.unit,
    'request_text', (select content from ledger.body where digest = v_operation.request_digest));
end;
$$;

-- Whether only an attempt's own sender can have reached the provider, and nobody was seen to.
create function ledger.is_untraced(p_attempt ledger.attempt) returns boolean
language plpgsql immutable as $$
begin
  return not p_attempt.has_trace and p_attempt.replayed_at is null;
end;
$$;

-- A sender that sent no byte gives its attempt up, under its own claim.
create function ledger.give_up_attempt(p_attempt ledger.attempt, p_reference text) returns void
language plpgsql as $$
declare
  v_evidence bigint;
begin
  v_evidence := ledger.store_evidence(jsonb_build_object('source', 'transport', 'reference', p_reference));
  perform ledger.end_uncharged(p_attempt, 'withdrawn', 'never_sent', v_evidence);
  perform ledger.advance(p_attempt.operation_key, 'given_up', p_attempt.attempt_no, v_evidence, '{}');
end;
$$;

create function ledger.give_up(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_attempt ledger.attempt;
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(p ->> 'operation_key');
  select * into v_attempt from ledger.attempt
  where operation_key = p ->> 'operation_key' and attempt_no = (p ->> 'attempt_no')::integer for update;
  if not found or v_attempt.claim is distinct from (p ->> 'claim')::uuid then
    return jsonb_build_object('status', 'not_yours', 'snapshot', ledger.snapshot(p ->> 'operation_key'));
  end if;
  if v_attempt.phase in ('sending', 'unknown') and ledger.is_untraced(v_attempt) then
    perform ledger.give_up_attempt(v_attempt, 'sender sent no byte');
    return jsonb_build_object('status', 'given_up', 'snapshot', ledger.snapshot(p ->> 'operation_key'));
  end if;
  return jsonb_build_object('status', 'unchanged', 'snapshot', ledger.snapshot(p ->> 'operation_key'));
end;
$$;

-- Ends every attempt of an operation that was not sent; the caller holds the operation's lock.
create function ledger.withdraw_unsent(p_operation_key text, p_reason text, p_ask_id text default null) returns integer
language plpgsql as $$
declare
  v_attempt  ledger.attempt;
  v_evidence bigint;
  v_count    integer := 0;
begin
  for v_attempt in
    select * from ledger.attempt
    where operation_key = p_operation_key and phase = 'not_sent' and (p_ask_id is null or ask_id = p_ask_id)
    for update
  loop
    v_evidence := ledger.store_evidence(jsonb_build_object('source', 'fence', 'reference', p_reason));
    perform ledger.end_uncharged(v_attempt, 'withdrawn', 'never_sent', v_evidence);
    perform ledger.advance(p_operation_key, 'withdrawn', v_attempt.attempt_no, v_evidence, jsonb_build_object('reason', p_reason));
    v_count := v_count + 1;
  end loop;
  return v_count;
end;
$$;

-- Withdraws what was not sent. Status `withdrawn` or `nothing_unsent`.
create function ledger.withdraw(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_count integer;
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(p ->> 'operation_key');
  v_count := ledger.withdraw_unsent(p ->> 'operation_key', p ->> 'reason');
  return jsonb_build_object('status', case when v_count > 0 then 'withdrawn' else 'nothing_unsent' end,
                            'snapshot', ledger.snapshot(p ->> 'operation_key'));
end;
$$;

-- Ends an ask, also where no operation exists: a placement may still be on its way.
create function ledger.end_ask(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key     text := ledger.operation_key_of(p ->> 'account', p ->> 'operation');
  v_attempt ledger.attempt;
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(v_key);
  insert into ledger.ask (operation_key, ask_id, recorded_at, ended_at)
  values (v_key, p ->> 'ask', ledger.now(), ledger.now())
  on conflict (operation_key, ask_id) do update set ended_at = coalesce(ask.ended_at, excluded.ended_at);
  perform ledger.withdraw_unsent(v_key, 'the ask ended: ' || (p ->> 'reason'), p ->> 'ask');
  for v_attempt in
    select * from ledger.attempt
    where operation_key = v_key and claim = (p ->> 'claim')::uuid and phase in ('sending', 'unknown')
      and ledger.is_untraced(attempt)
    for update
  loop
    perform ledger.give_up_attempt(v_attempt, 'the ask ended before a byte was sent');
  end loop;
  return jsonb_build_object('status', 'ended', 'snapshot', ledger.snapshot(v_key));
end;
$$;

-- Stores a wish to stop. What was not sent is withdrawn at once; about the rest the asking goes on. Status `requested`,
-- `already_requested`, `closed` (the wish is not stored), `not_found` or `ledger_untrusted`. `is_supported` false: the
-- provider names no way to stop it, which is said at once.
create function ledger.request_cancel(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := p ->> 'operation_key';
  v_operation ledger.operation;
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(v_key);
  select * into v_operation from ledger.operation where operation_key = v_key for update;
  if not found then
    return jsonb_build_object('status', 'not_found');
  end if;
  if v_operation.closed_at is not null then
    return jsonb_build_object('status', 'closed', 'snapshot', ledger.snapshot(v_key));
  end if;
  if v_operation.cancel <> 'none' then
    return jsonb_build_object('status', 'already_requested', 'snapshot', ledger.snapshot(v_key));
  end if;
  update ledger.operation set cancel = 'requested', cancel_requested_at = ledger.now() where operation_key = v_key;
  perform ledger.advance(v_key, 'cancel_requested', null, null, jsonb_strip_nulls(jsonb_build_object(
    'by', p ->> 'by', 'reason', p ->> 'reason', 'requestId', p ->> 'request_id')));
  perform ledger.withdraw_unsent(v_key, 'cancel requested before it was sent');
  select * into v_operation from ledger.operation where operation_key = v_key;
  if v_operation.closed_at is null and (p ->> 'is_supported')::boolean is false then
    update ledger.operation set cancel = 'unsupported' where operation_key = v_key;
    perform ledger.advance(v_key, 'cancel_unsupported', null, null, '{}');
  elsif v_operation.closed_at is null then
    -- Whoever asks next sends it: that is due now.
    update ledger.attempt set next_question_due_at = least(next_question_due_at, ledger.now())
    where operation_key = v_key and phase in ('in_flight', 'unknown');
  end if;
  return jsonb_build_object('status', 'requested', 'snapshot', ledger.snapshot(v_key));
end;
$$;

-- What the provider answered to the wish: `acknowledged`, `refused`, `unsupported`; none of them says that it stopped.
-- `no_answer` leaves the wish `requested`: it is sent again. Status `recorded` or `unchanged`.
create function ledger.record_cancel_answer(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := p ->> 'operation_key';
  v_answer    text := p ->> 'answer';
  v_no        integer := (p ->> 'attempt_no')::integer;
  v_operation ledger.operation;
  v_evidence  bigint;
begin
  perform ledger.lock_operation(v_key);
  select * into strict v_operation from ledger.operation where operation_key = v_key for update;
  if v_operation.cancel <> 'requested' then
    return jsonb_build_object('status', 'unchanged', 'snapshot', ledger.snapshot(v_key));
  end if;
  update ledger.operation
  set cancel_sent_count = cancel_sent_count + 1, cancel_last_answer = p ->> 'detail',
      cancel = case when v_answer = 'no_answer' then cancel else v_answer end
  where operation_key = v_key;
  if v_answer <> 'no_answer' or v_operation.cancel_last_answer is distinct from p ->> 'detail' then
    v_evidence := ledger.store_evidence(p -> 'evidence');
    perform ledger.advance(v_key, case v_answer when 'no_answer' then 'cancel_unanswered' else 'cancel_' || v_answer end,
      v_no, v_evidence, jsonb_build_object('answer', p ->> 'detail'));
  end if;
  return jsonb_build_object('status', 'recorded', 'snapshot', ledger.snapshot(v_key));
end;
$$;
