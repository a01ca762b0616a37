-- Recording what providers say
-- ----------------------------
-- The twin of `decide` in domain/decide.ts. Silence keeps the hold (P2); every hold ends with
-- evidence (P3); a stated total is booked in full and once (P5).

create function ledger.question_due(p_attempt ledger.attempt, p_delay_ms bigint) returns timestamptz
language plpgsql as $$
begin
  return (
    select ledger.now()
      + coalesce(p_delay_ms, (p_attempt.offer -> 'timings' ->> 'questionFirstMs')::bigint) * interval '1 millisecond'
  );
end;
$$;

-- Keeps the hold of an open attempt and says what is known: `in_flight` or `unknown`. A question
-- that brought the same answer as the one before is counted, and no event.
create function ledger.retain(
  p_attempt ledger.attempt, p_phase text, p_reason text, p_evidence_id bigint, p_answer text, p_delay_ms bigint
) returns void
language plpgsql as $$
begin
  update ledger.attempt
  set phase = p_phase,
      has_trace = has_trace or p_phase = 'in_flight',
      reasons = case when p_reason is null then reasons else ledger.with_reason(reasons, p_reason) end,
      unknown_since = case when p_phase = 'unknown' then coalesce(unknown_since, ledger.now()) else unknown_since end,
      last_answer = p_answer,
      next_question_due_at = ledger.question_due(p_attempt, p_delay_ms)
  where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no;
  if p_attempt.phase <> p_phase or p_attempt.last_answer is distinct from p_answer then
    perform ledger.advance(p_attempt.operation_key, p_phase, p_attempt.attempt_no, p_evidence_id,
      jsonb_strip_nulls(jsonb_build_object('reason', p_reason, 'answer', p_answer)));
  end if;
  perform ledger.tell_of_waiting(p_attempt.operation_key, p_attempt.attempt_no, p_reason);
end;
$$;

-- What a person should hear of an attempt that stays open: a reason that no further question will mend, and a wait that
-- has become long.
create function ledger.tell_of_waiting(p_operation_key text, p_attempt_no integer, p_reason text) returns void
language plpgsql as $$
declare
  v_attempt   ledger.attempt;
  v_operation ledger.operation;
  v_long_ago  timestamptz := ledger.now() - interval '15 minutes';
begin
  select * into strict v_attempt from ledger.attempt where operation_key = p_operation_key and attempt_no = p_attempt_no;
  select * into strict v_operation from ledger.operation where operation_key = p_operation_key;
  if p_reason in ('inconsistent_usage', 'price_missing', 'retention_lapsed') then
    perform ledger.raise_alert(p_reason, p_operation_key, p_attempt_no, jsonb_build_object('answer', v_attempt.last_answer));
  end if;
  if v_attempt.phase = 'unknown' and v_attempt.unknown_since <= v_long_ago then
    perform ledger.raise_alert('stuck_hold', p_operation_key, p_attempt_no,
      jsonb_build_object('unknownSince', v_attempt.unknown_since, 'amount', v_attempt.amount::text, 'unit', v_attempt.unit));
  end if;
  if v_operation.cancel in ('requested', 'acknowledged', 'refused') and v_operation.cancel_requested_at <= v_long_ago then
    perform ledger.raise_alert('cancel_not_confirmed', p_operation_key, p_attempt_no,
      jsonb_build_object('cancel', v_operation.cancel, 'requestedAt', v_operation.cancel_requested_at));
  end if;
end;
$$;

-- Turns a hold into a charge: the charge in full, the rest returned, what exceeds the hold counted.
create function ledger.capture(
  p_attempt ledger.attempt, p_total bigint, p_priced_by text, p_evidence_id bigint
) returns void
language plpgsql as $$
declare
  v_hold    ledger.hold;
  v_posting bigint;
begin
  if p_attempt.phase = 'not_sent' then
    update ledger.attempt set phase = 'in_flight', has_trace = true
    where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no;
    perform ledger.advance(p_attempt.operation_key, 'charged_before_sent', p_attempt.attempt_no, p_evidence_id, '{}');
  end if;
  perform ledger.lock_budgets(ledger.budgets_of_attempt(p_attempt.operation_key, p_attempt.attempt_no));
  v_posting := ledger.open_posting('hold_captured', p_attempt.operation_key, p_attempt.attempt_no, p_evidence_id);
  update ledger.attempt
  set phase = 'charged', charged_amount = p_total, priced_by = p_priced_by, has_trace = true,
      end_evidence_id = p_evidence_id, ended_at = ledger.now(), unknown_since = null, next_question_due_at = null
  where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no;
  for v_hold in
    update ledger.hold set ended_at = ledger.now(), captured_amount = p_total
    where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no and ended_at is null
    returning *
  loop
    perform ledger.post(v_posting, v_hold.budget_period_id, 0, -v_hold.amount, p_total);
    if p_total > v_hold.amount then
      update ledger.budget_period set overrun_amount = overrun_amount + p_total - v_hold.amount
      where budget_period_id = v_hold.budget_period_id;
    end if;
  end loop;
  perform ledger.advance(p_attempt.operation_key, 'charged', p_attempt.attempt_no, p_evidence_id,
    jsonb_strip_nulls(jsonb_build_object('amount', p_total::text, 'unit', p_attempt.unit, 'pricedBy', p_priced_by,
      'overrun', case when p_total > p_attempt.amount then (p_total - p_attempt.amount)::text end)));
  if p_total > p_attempt.amount then
    perform ledger.raise_alert('overrun', p_attempt.operation_key, p_attempt.attempt_no,
      jsonb_build_object('amount', p_total::text, 'held', p_attempt.amount::text, 'unit', p_attempt.unit));
  end if;
end;
$$;

-- A charge that is proved as a minimum is shown, and never cut to what is available. Work that has ended while its
-- final charge was not stated is unknown, however much is proved.
create function ledger.raise_floor(
  p_attempt ledger.attempt, p_floor bigint, p_evidence_id bigint, p_report jsonb
) returns void
language plpgsql as $$
declare
  v_hold    ledger.hold;
  v_posting bigint;
  v_ended   boolean := coalesce(p_report ->> 'execution', 'running') in ('completed', 'cancelled', 'failed');
begin
  perform ledger.lock_budgets(ledger.budgets_of_attempt(p_attempt.operation_key, p_attempt.attempt_no));
  update ledger.attempt set floor_amount = greatest(floor_amount, p_floor), amount = greatest(amount, p_floor)
  where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no;
  for v_hold in
    select * from ledger.hold
    where operation_key = p_attempt.operation_key and attempt_no = p_attempt.attempt_no
      and ended_at is null and amount < p_floor
  loop
    v_posting := coalesce(v_posting,
      ledger.open_posting('hold_raised', p_attempt.operation_key, p_attempt.attempt_no, p_evidence_id));
    update ledger.hold set amount = p_floor where hold_id = v_hold.hold_id;
    perform ledger.post(v_posting, v_hold.budget_period_id, 0, p_floor - v_hold.amount, 0);
  end loop;
  perform ledger.retain(p_attempt,
    case when v_ended then 'unknown' else 'in_flight' end, case when v_ended then 'terminal_without_charge' end,
    -- Beside a status the amount is told by the floor: a running job is no news at every tick.
    p_evidence_id, coalesce(p_report ->> 'execution', 'charged at least ' || p_floor),
    (p_report ->> 'question_delay_ms')::bigint);
end;
$$;

create function ledger.shows_work(p_usage jsonb) returns boolean
language plpgsql immutable as $$
begin
  return (
    select exists (select 1 from jsonb_each_text(coalesce(p_usage, '{}')) used
                   where used.key <> 'request' and used.value::numeric > 0)
  );
end;
$$;

-- Books a final total on an open attempt. Answers the status.
create function ledger.book_final(
  p_attempt ledger.attempt, p_total bigint, p_report jsonb, p_evidence_id bigint
) returns text
language plpgsql as $$
declare
  v_delay bigint := (p_report ->> 'question_delay_ms')::bigint;
begin
  if p_total < p_attempt.floor_amount then
    perform ledger.retain(p_attempt, 'unknown', 'inconsistent_usage', p_evidence_id, 'a total below its own floor', v_delay);
    return 'retained';
  end if;
  if p_total = 0 and exists (select 1 from ledger.price
                             where price_version_id = p_attempt.price_version_id and rate_amount > 0) then
    if ledger.shows_work(p_report -> 'usage') then
      perform ledger.retain(p_attempt, 'unknown', 'inconsistent_usage', p_evidence_id, 'a total of 0 with work done', v_delay);
      return 'retained';
    end if;
    perform ledger.end_uncharged(p_attempt, 'free', 'charged_zero', p_evidence_id);
    return 'ended_free';
  end if;
  perform ledger.capture(p_attempt, p_total, p_report ->> 'priced_by', p_evidence_id);
  return 'captured';
end;
$$;

-- The one door for stated totals: answer, lookup, webhook, import. `p_report` has `basis`, `amount`
-- or `usage`, `question_delay_ms`. Status: `captured`, `ended_free` (the caller advances), `retained`,
-- `floor_raised`, `duplicate`, `noted_after_end`.
create function ledger.book_report(p_attempt ledger.attempt, p_report jsonb, p_evidence_id bigint) returns text
language plpgsql as $$
declare
  v_standing ledger.charge_report;
  v_cost     record;
  v_total    bigint;
  v_by       text := case when p_report ? 'amount' then 'provider' else 'price_book' end;
  v_status   text;
  v_delay    bigint := (p_report ->> 'question_delay_ms')::bigint;
  v_ended    boolean := p_attempt.ended_at is not null;
  v_repeats  boolean;
begin
  if p_report ? 'amount' then
    v_total := (p_report ->> 'amount')::bigint;
  else
    v_cost := ledger.cost_of(p_attempt.price_version_id, p_report -> 'usage');
    if v_cost.unpriced_dimension is not null then
      if v_ended then
        return 'noted_after_end';
      end if;
      perform ledger.retain(p_attempt, 'unknown', 'price_missing', p_evidence_id, 'no rate for ' || v_cost.unpriced_dimension, v_delay);
      return 'retained';
    end if;
    v_total := v_cost.amount::bigint;
  end if;

  select * into v_standing from ledger.charge_report
  where provider = p_attempt.provider and operation_key = p_attempt.operation_key
    and attempt_no = p_attempt.attempt_no and part = ''
  order by revision desc limit 1;
  v_repeats := coalesce(v_standing.total_amount = v_total and v_standing.basis = p_report ->> 'basis', false);
  if v_repeats and v_ended then
    -- Two of our own questions that overlapped are no report of the provider's.
    if p_report ->> 'via' = 'lookup' then
      return 'duplicate';
    end if;
    perform ledger.advance(p_attempt.operation_key, 'duplicate', p_attempt.attempt_no, p_evidence_id,
      jsonb_build_object('amount', v_total::text));
    return 'duplicate';
  end if;

  v_status := case
    when v_ended then 'noted_after_end'
    when p_report ->> 'basis' = 'final' then
      ledger.book_final(p_attempt, v_total, p_report || jsonb_build_object('priced_by', v_by), p_evidence_id)
    when p_report ->> 'basis' = 'lower_bound' then 'floor_raised'
    else 'retained'
  end;
  if not v_repeats then
    insert into ledger.charge_report
      (provider, operation_key, attempt_no, revision, basis, total_amount, priced_by, is_booked, evidence_id, recorded_at)
    values
      (p_attempt.provider, p_attempt.operation_key, p_attempt.attempt_no, coalesce(v_standing.revision, 0) + 1,
       p_report ->> 'basis', v_total, v_by, v_status in ('captured', 'ended_free', 'floor_raised'), p_evidence_id, ledger.now());
  end if;
  if v_status = 'floor_raised' then
    perform ledger.raise_floor(p_attempt, greatest(v_total, p_attempt.floor_amount), p_evidence_id, p_report);
  elsif v_status = 'noted_after_end' then
    perform ledger.advance(p_attempt.operation_key, 'report_after_end', p_attempt.attempt_no, p_evidence_id,
      jsonb_build_object('amount', v_total::text));
    perform ledger.raise_alert('charge_after_end', p_attempt.operation_key, p_attempt.attempt_no,
      jsonb_build_object('amount', v_total::text, 'unit', p_attempt.unit, 'phase', p_attempt.phase));
  elsif p_report ->> 'basis' = 'upper_bound' then
    perform ledger.retain(p_attempt, 'unknown', 'terminal_without_charge', p_evidence_id, 'charged at most ' || v_total, v_delay);
  end if;
  return v_status;
end;
$$;

-- A total that no counter can hold is a provider's error: it is kept as evidence, and so is the hold.
create function ledger.book_report_safely(p_attempt ledger.attempt, p_report jsonb, p_evidence_id bigint) returns text
language plpgsql as $$
begin
  return ledger.book_report(p_attempt, p_report, p_evidence_id);
exception when numeric_value_out_of_range then
  if p_attempt.ended_at is null then
    perform ledger.retain(p_attempt, 'unknown', 'inconsistent_usage', p_evidence_id, 'a total larger than any book can hold',
                          (p_report ->> 'question_delay_ms')::bigint);
    return 'retained';
  end if;
  return 'noted_after_end';
end;
$$;

-- Whether the operation may go on to another route now; a reason when it may not.
create function ledger.next_problem(p_operation ledger.operation) returns text
language plpgsql as $$
begin
  return (
    select case
      when p_operation.cancel <> 'none' then 'cancel_requested'
      when exists (select 1 from ledger.attempt where operation_key = p_operation.operation_key and phase = 'charged') then 'charged'
      when p_operation.fallback_before <= ledger.now() then 'too_late'
      when exists (
        select 1 from ledger.ask join ledger.attempt using (operation_key, ask_id)
        where ask.operation_key = p_operation.operation_key and ask.ended_at is not null
          and attempt.attempt_no = (select max(attempt_no) from ledger.attempt newest
                                    where newest.operation_key = p_operation.operation_key)) then 'ask_ended'
      when p_operation.chain ->> 'fallbackWhileUnknown' = 'wait' and exists (
        select 1 from ledger.attempt where operation_key = p_operation.operation_key and ended_at is null) then 'earlier_attempt_open'
    end
  );
end;
$$;

-- What the next attempt is admitted with. With `fallback_hold: upfront` it takes over what the attempt that ends in
-- this transaction held, in the periods it was held in and without a new comparison: nobody else can have had it
-- meanwhile. Whatever costs more than that is compared like any other hold. Answers as `decide_admission`.
create function ledger.admit_next(p_operation ledger.operation, p_ended ledger.attempt, p_offer jsonb) returns jsonb
language plpgsql as $$
declare
  v_price jsonb := ledger.price_offer(p_offer);
begin
  if p_operation.chain ->> 'fallbackHold' = 'upfront' and v_price ->> 'unit' = p_ended.unit
     and (v_price ->> 'amount')::numeric <= p_ended.amount then
    return jsonb_build_object(
      'price', v_price || jsonb_build_object('amount', p_ended.amount::text),
      'periods', (select jsonb_agg(budget_period_id order by budget_period_id) from ledger.hold
                  where operation_key = p_ended.operation_key and attempt_no = p_ended.attempt_no),
      'taken_over_from', p_ended.attempt_no);
  end if;
  return ledger.decide_admission(p_operation.account_id, p_operation.scopes,
                                 ledger.price_hold(p_operation.chain, p_offer));
end;
$$;

-- Ends an attempt as free and, in the same transaction, admits the next one where one is named; the
-- caller holds the locks of both sets of budgets.
create function ledger.end_free_and_go_on(
  p_operation ledger.operation, p_attempt ledger.attempt, p_proof text, p_evidence_id bigint, p jsonb
) returns void
language plpgsql as $$
declare
  v_next      jsonb := nullif(p -> 'next', 'null'::jsonb);
  v_admission jsonb;
  v_no        integer;
begin
  if p_proof is not null then
    perform ledger.end_uncharged(p_attempt, 'free', p_proof, p_evidence_id);
  end if;
  if v_next is not null and ledger.next_problem(p_operation) is null then
    v_admission := ledger.admit_next(p_operation, p_attempt, v_next);
    if not v_admission ? 'refusal' then
      v_no := ledger.open_attempt(p_attempt.operation_key, v_next, p ->> 'ask', v_admission);
    end if;
  end if;
  perform ledger.advance(p_attempt.operation_key, 'free', p_attempt.attempt_no, p_evidence_id,
    jsonb_build_object('proof', coalesce(p_proof, 'charged_zero')));
  if v_no is not null then
    perform ledger.advance(p_attempt.operation_key, 'hold_placed', v_no, null,
      jsonb_strip_nulls(jsonb_build_object(
        'amount', v_admission -> 'price' ->> 'amount', 'unit', v_admission -> 'price' ->> 'unit',
        'route', v_next ->> 'route', 'ask', p ->> 'ask', 'takenOverFrom', v_admission -> 'taken_over_from')));
  elsif v_admission ? 'refusal' then
    perform ledger.store_refusal(p_operation.account_id, p_operation.operation_id, v_next ->> 'route', v_admission -> 'refusal');
    perform ledger.advance(p_attempt.operation_key, 'next_refused', null, null, v_admission -> 'refusal');
  end if;
end;
$$;

-- Records one observation of one attempt, with capture and, where one is named, the next attempt.
-- Status: `captured`, `ended_free`, `floor_raised`, `retained`, `duplicate`, `noted_after_end`,
-- `unchanged`, `not_yours`, `ledger_untrusted`.
create function ledger.record_observation(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := p ->> 'operation_key';
  v_seen      jsonb := p -> 'observation';
  v_kind      text := p -> 'observation' ->> 'kind';
  v_operation ledger.operation;
  v_attempt   ledger.attempt;
  v_evidence  bigint;
  v_status    text := 'retained';
begin
  if v_kind = 'not_accepted' and not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(v_key);
  select * into strict v_operation from ledger.operation where operation_key = v_key for update;
  select * into strict v_attempt from ledger.attempt
  where operation_key = v_key and attempt_no = (p ->> 'attempt_no')::integer for update;
  if p -> 'answer' ->> 'digest' is not null then
    perform ledger.put_body(p -> 'answer' ->> 'digest', p -> 'answer' ->> 'text');
    update ledger.operation set answer_digest = coalesce(answer_digest, p -> 'answer' ->> 'digest') where operation_key = v_key;
  end if;
  -- The claim guards what only the sender can know; a charge is booked with any claim or none.
  if p ->> 'via' = 'dispatch' and v_kind <> 'charge' and v_attempt.claim is distinct from (p ->> 'claim')::uuid then
    return jsonb_build_object('status', 'not_yours', 'snapshot', ledger.snapshot(v_key));
  end if;
  if v_attempt.ended_at is not null and v_kind <> 'charge' then
    return jsonb_build_object('status', 'unchanged', 'snapshot', ledger.snapshot(v_key));
  end if;

  v_evidence := ledger.store_evidence(v_seen -> 'evidence', v_seen -> 'usage');
  update ledger.attempt
  set remote_id = coalesce(v_seen ->> 'remoteId', remote_id),
      -- An id, a total, a status, what became of the work: whoever says so knows of the attempt.
      has_trace = has_trace or v_seen ->> 'remoteId' is not null or v_seen ? 'execution' or v_kind = 'charge'
                  or (v_kind = 'status' and v_seen ->> 'status' <> 'unknown'),
      question_count = question_count + case when p ->> 'via' = 'lookup' then 1 else 0 end
  where operation_key = v_key and attempt_no = v_attempt.attempt_no
  returning * into v_attempt;

  -- One sorted lock over what ends and what may begin: two locks in a row could wait for each other.
  if nullif(p -> 'next', 'null'::jsonb) is not null then
    perform ledger.lock_budgets(ledger.budgets_of_attempt(v_key, v_attempt.attempt_no)
      || ledger.budgets_of_request(v_operation.account_id, v_operation.scopes));
  end if;
  -- What became of the work is taken in first: the end that a charge brings depends on it.
  if v_seen ? 'execution' and v_attempt.ended_at is null then
    perform ledger.observe_execution(v_key, v_attempt.attempt_no, v_seen ->> 'execution', v_evidence);
  end if;
  case v_kind
    when 'charge' then
      v_status := ledger.book_report_safely(v_attempt, v_seen || jsonb_build_object('question_delay_ms', p -> 'question_delay_ms', 'via', p -> 'via'), v_evidence);
      if v_status = 'ended_free' then
        perform ledger.end_free_and_go_on(v_operation, v_attempt, null, v_evidence, p);
      end if;
    when 'not_accepted' then
      v_status := ledger.record_not_accepted(v_operation, v_attempt, v_evidence, p);
    when 'status' then
      perform ledger.observe_execution(v_key, v_attempt.attempt_no, v_seen ->> 'status', v_evidence);
      perform ledger.retain(v_attempt,
        case when v_seen ->> 'status' in ('not_started', 'running') then 'in_flight' else 'unknown' end,
        case v_seen ->> 'status' when 'not_started' then null when 'running' then null
          when 'unknown' then 'no_answer' else 'terminal_without_charge' end,
        v_evidence, v_seen ->> 'status', (p ->> 'question_delay_ms')::bigint);
    when 'no_answer' then
      if v_attempt.phase = 'not_sent' then
        v_status := 'unchanged';
      else
        perform ledger.retain(v_attempt, 'unknown', v_seen ->> 'reason', v_evidence, v_seen ->> 'detail', (p ->> 'question_delay_ms')::bigint);
      end if;
  end case;
  return jsonb_build_object('status', v_status, 'snapshot', ledger.snapshot(v_key));
end;
$$;

-- A proof that nothing was charged. `no_connection` and `documented_rejection` are proofs only from
-- the sender; `fenced_absence` only when no sender's time is open and the longest request lifetime
-- has passed. Against a trace, a repeat or a floor it proves nothing.
create function ledger.record_not_accepted(
  p_operation ledger.operation, p_attempt ledger.attempt, p_evidence_id bigint, p jsonb
) returns text
language plpgsql as $$
declare
  v_proof text := p -> 'observation' ->> 'proof';
begin
  if v_proof in ('no_connection', 'documented_rejection') and p ->> 'via' <> 'dispatch' then
    raise exception 'only the sender can prove %, this came by %', v_proof, p ->> 'via' using errcode = 'LG001';
  end if;
  if p_attempt.phase = 'not_sent' then
    return 'unchanged';
  end if;
  if not ledger.is_untraced(p_attempt) or p_attempt.floor_amount > 0
     or (v_proof = 'fenced_absence' and coalesce(p_attempt.answer_due_at > ledger.now(), true)) then
    perform ledger.retain(p_attempt, 'unknown', 'inconsistent_usage', p_evidence_id,
      'a proof of no charge against a trace', (p ->> 'question_delay_ms')::bigint);
    return 'retained';
  end if;
  perform ledger.end_free_and_go_on(p_operation, p_attempt, v_proof, p_evidence_id, p);
  return 'ended_free';
end;
$$;

-- The local side ended without an answer: the hold is kept and the asking begins. Only a `sending`
-- attempt changes; a sender that is still alive may record its answer later all the same.
create function ledger.mark_unknown(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_attempt  ledger.attempt;
  v_evidence bigint;
  v_status   text := 'unchanged';
begin
  perform ledger.lock_operation(p ->> 'operation_key');
  for v_attempt in
    select * from ledger.attempt where operation_key = p ->> 'operation_key' and phase = 'sending' for update
  loop
    v_evidence := ledger.store_evidence(jsonb_build_object('source', 'transport', 'reference', p ->> 'detail'));
    perform ledger.retain(v_attempt, 'unknown', p ->> 'reason', v_evidence, p ->> 'detail', null);
    v_status := 'marked';
  end loop;
  return jsonb_build_object('status', v_status, 'snapshot', ledger.snapshot(p ->> 'operation_key'));
end;
$$;

-- Admits another attempt after one that was withdrawn, or, where the chain allows it, beside one
-- that is unknown. Status: `placed`, `refused` (with `refusal` or `reason`), `ledger_untrusted`.
create function ledger.next_attempt(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := p ->> 'operation_key';
  v_operation ledger.operation;
  v_newest    ledger.attempt;
  v_problem   text;
  v_admission jsonb;
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(v_key);
  select * into strict v_operation from ledger.operation where operation_key = v_key for update;
  select * into strict v_newest from ledger.attempt where operation_key = v_key order by attempt_no desc limit 1 for update;
  v_problem := case
    when v_newest.attempt_no <> (p ->> 'after_attempt')::integer then 'not_newest'
    when exists (select 1 from ledger.ask where operation_key = v_key and ask_id = p ->> 'ask' and ended_at is not null) then 'ask_ended'
    when v_newest.phase = 'unknown' and v_operation.chain ->> 'fallbackWhileUnknown' = 'allow' then null
    when v_newest.phase <> 'withdrawn' then 'not_withdrawn'
    when v_operation.closed_at is not null and exists (
      select 1 from ledger.attempt where operation_key = v_key and phase <> 'withdrawn') then 'closed'
  end;
  v_problem := coalesce(v_problem, ledger.next_problem(v_operation));
  if v_problem is not null then
    return jsonb_build_object('status', 'refused', 'reason', v_problem, 'snapshot', ledger.snapshot(v_key));
  end if;
  -- Nothing is taken over here: what was withdrawn gave its hold back before, and what is unknown keeps its own.
  v_admission := ledger.decide_admission(v_operation.account_id, v_operation.scopes,
                                         ledger.price_hold(v_operation.chain, p -> 'offer'));
  if v_admission ? 'refusal' then
    perform ledger.store_refusal(v_operation.account_id, v_operation.operation_id, p -> 'offer' ->> 'route', v_admission -> 'refusal');
    perform ledger.advance(v_key, 'next_refused', null, null, v_admission -> 'refusal');
    return jsonb_build_object('status', 'refused', 'refusal', v_admission -> 'refusal', 'snapshot', ledger.snapshot(v_key));
  end if;
  perform ledger.advance(v_key, 'hold_placed', ledger.open_attempt(v_key, p -> 'offer', p ->> 'ask', v_admission), null,
    jsonb_build_object('amount', v_admission -> 'price' ->> 'amount', 'unit', v_admission -> 'price' ->> 'unit',
                       'route', p -> 'offer' ->> 'route', 'ask', p ->> 'ask'));
  return jsonb_build_object('status', 'placed', 'snapshot', ledger.snapshot(v_key));
end;
$$;

-- A total that arrives by itself: webhook, import. One that matches no attempt is kept and shown.
create function ledger.record_charge_report(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_attempt ledger.attempt;
  v_status  text;
begin
  select * into v_attempt from ledger.attempt where attempt_key = p ->> 'attempt_key' and provider = p ->> 'provider';
  if not found then
    insert into ledger.unmatched_report (provider, attempt_key, report, recorded_at)
    values (p ->> 'provider', p ->> 'attempt_key', p, ledger.now());
    perform ledger.raise_alert('unmatched_report', null, null,
      jsonb_build_object('provider', p ->> 'provider', 'attemptKey', p ->> 'attempt_key'), p ->> 'attempt_key');
    return jsonb_build_object('status', 'unmatched');
  end if;
  return ledger.record_observation(jsonb_build_object(
    'operation_key', v_attempt.operation_key, 'attempt_no', v_attempt.attempt_no, 'via', 'report',
    'observation', (p -> 'report') || jsonb_build_object('kind', 'charge')));
end;
$$;
