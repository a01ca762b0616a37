-- Admission
-- ---------
-- One transaction, in this order: look the id up under lock, resolve budgets, price the worst case,
-- lock the budgets sorted, compare, store. Never admitted above the limit (P1).

create function ledger.price_version_of(p_route text) returns bigint
language plpgsql stable as $$
begin
  return (
    select price_version_id from ledger.price_version
    where route = p_route and valid_from <= ledger.now()
    order by valid_from desc, price_version_id desc
    limit 1
  );
end;
$$;

-- The cost of a usage, or of a bound, rounded up once; the twin of `costRoundedUp`. Answers a
-- dimension instead of an amount where the price version has no rate for it.
create function ledger.cost_of(
  p_price_version_id bigint, p_usage jsonb, out amount numeric, out unpriced_dimension text
)
language plpgsql stable as $$
begin
  select min(used.key) into unpriced_dimension
  from jsonb_each_text(p_usage) used
  where not exists (select 1 from ledger.price
                    where price_version_id = p_price_version_id and dimension = used.key);
  if unpriced_dimension is not null then
    return;
  end if;
  select div(coalesce(sum(used.value::numeric * price.rate_amount * (1000000 / price.per_count)), 0) + 999999, 1000000)
  into amount
  from jsonb_each_text(p_usage) used
  join ledger.price on price.price_version_id = p_price_version_id and price.dimension = used.key;
end;
$$;

-- The most that one send of this offer can cost, or why that cannot be said.
create function ledger.price_offer(p_offer jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_version   bigint := ledger.price_version_of(p_offer ->> 'route');
  v_unit      text;
  v_dimension text;
  v_cost      record;
begin
  if v_version is null then
    return jsonb_build_object('refused', 'unpriced', 'dimension', 'every dimension');
  end if;
  select min(dimension) into v_dimension from ledger.price
  where price_version_id = v_version and rate_amount > 0 and not (p_offer -> 'bound') ? dimension;
  if v_dimension is not null then
    return jsonb_build_object('refused', 'unbounded', 'dimension', v_dimension);
  end if;
  v_cost := ledger.cost_of(v_version, p_offer -> 'bound');
  if v_cost.unpriced_dimension is not null then
    return jsonb_build_object('refused', 'unpriced', 'dimension', v_cost.unpriced_dimension);
  end if;
  select unit into v_unit from ledger.price_version where price_version_id = v_version;
  return jsonb_build_object(
    'price_version_id', v_version, 'unit', v_unit,
    'amount', (v_cost.amount * (p_offer ->> 'paidAttemptsPerSend')::integer)::text,
    'is_free', not exists (select 1 from ledger.price where price_version_id = v_version and rate_amount > 0));
end;
$$;

-- What is to be held for an offer. With `fallback_hold: upfront` that is the dearest single route from this one to the
-- end of the chain, so that the hold can move over, and one route that cannot be priced refuses them all.
create function ledger.price_hold(p_chain jsonb, p_offer jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_own   jsonb := ledger.price_offer(p_offer);
  v_held  jsonb := v_own;
  v_index bigint;
  v_offer jsonb;
  v_price jsonb;
begin
  if v_own ? 'refused' then
    return v_own || jsonb_build_object('route', p_offer ->> 'route');
  end if;
  if coalesce(p_chain ->> 'fallbackHold', 'each') <> 'upfront' then
    return v_own;
  end if;
  select min(position) into v_index
  from jsonb_array_elements(p_chain -> 'routes') with ordinality as link (offer, position)
  where offer ->> 'route' = p_offer ->> 'route';
  for v_offer in
    select offer from jsonb_array_elements(p_chain -> 'routes') with ordinality as link (offer, position)
    where position > v_index order by position
  loop
    v_price := ledger.price_offer(v_offer);
    if not v_price ? 'refused' and v_price ->> 'unit' <> v_own ->> 'unit' then
      v_price := jsonb_build_object('refused', 'unpriced', 'dimension', 'unit of account');
    end if;
    if v_price ? 'refused' then
      return v_price || jsonb_build_object('route', v_offer ->> 'route');
    end if;
    v_held := v_held || jsonb_build_object(
      'amount', greatest((v_held ->> 'amount')::numeric, (v_price ->> 'amount')::numeric)::text,
      'is_free', (v_held ->> 'is_free')::boolean and (v_price ->> 'is_free')::boolean);
  end loop;
  return v_held;
end;
$$;

-- The account's own budgets and its parents', united with those of the request.
create function ledger.budgets_of_request(p_account_id text, p_scopes jsonb) returns text[]
language plpgsql stable as $$
begin
  return (
    select coalesce(array_agg(distinct scope.budget_id order by scope.budget_id), '{}')
    from ledger.account
    join ledger.budget_scope scope on
         (scope.kind = 'account'      and scope.value = account.account_id)
      or (scope.kind = 'team'         and scope.value = account.team)
      or (scope.kind = 'organisation' and scope.value = account.organisation)
      or (scope.kind = 'end_user'     and scope.value = p_scopes ->> 'endUser')
      or (scope.kind = 'task'         and scope.value in (p_scopes ->> 'taskId', account.account_id || '/' || (p_scopes ->> 'taskId')))
      or (scope.kind = 'tag'          and coalesce(p_scopes -> 'tags', '[]') ? scope.value)
    where account.account_id = p_account_id
  );
end;
$$;

-- The period of a budget that contains now; opened, with its limit posted, by whoever needs it
-- first. The caller holds the budget's lock.
create function ledger.period_of(p_budget ledger.budget) returns ledger.budget_period
language plpgsql as $$
declare
  v_period  ledger.budget_period;
  v_posting bigint;
begin
  if p_budget.period_kind <> 'none' then
    raise exception 'period kind % is not supported yet', p_budget.period_kind using errcode = 'LG001';
  end if;
  select * into v_period from ledger.budget_period where budget_id = p_budget.budget_id and period_key = 'all';
  if found then
    return v_period;
  end if;
  insert into ledger.budget_period (budget_id, period_key) values (p_budget.budget_id, 'all') returning * into v_period;
  if coalesce(p_budget.limit_amount, 0) > 0 then
    v_posting := ledger.open_posting('limit_set', null, null, null);
    perform ledger.post(v_posting, v_period.budget_period_id, p_budget.limit_amount, 0, 0);
    select * into v_period from ledger.budget_period where budget_period_id = v_period.budget_period_id;
  end if;
  return v_period;
end;
$$;

-- What of the open holds on a budget period may have been charged without our knowing.
create function ledger.unknown_amount_of(p_budget_period_id bigint) returns bigint
language plpgsql as $$
begin
  return (
    select coalesce(sum(hold.amount), 0)::bigint
    from ledger.hold join ledger.attempt using (operation_key, attempt_no)
    where hold.budget_period_id = p_budget_period_id and hold.ended_at is null
      and (attempt.phase = 'unknown' or (attempt.phase = 'sending' and attempt.answer_due_at <= ledger.now()))
  );
end;
$$;

-- Each counter must be what the last entry of its account says, or somebody wrote past the functions.
create function ledger.counters_agree(p_period ledger.budget_period) returns boolean
language plpgsql stable as $$
begin
  return (
    select not exists (
      select 1
      from (values ('limit',     -p_period.limit_amount),
                   ('available', p_period.limit_amount - p_period.held_amount - p_period.captured_amount),
                   ('held',      p_period.held_amount),
                   ('captured',  p_period.captured_amount)) as counter (account, balance)
      where counter.balance <> coalesce(
        (select entry.balance_after from ledger.entry
         where entry.budget_period_id = p_period.budget_period_id and entry.account = counter.account
         order by entry.entry_no desc limit 1), 0))
  );
end;
$$;

-- Why this hold does not fit this budget; null when it does. The caller holds the budget's lock.
create function ledger.refusal_of(
  p_budget ledger.budget, p_period ledger.budget_period, p_price jsonb
) returns jsonb
language plpgsql as $$
declare
  v_needed    numeric := (p_price ->> 'amount')::numeric;
  v_available bigint  := p_budget.limit_amount - p_period.captured_amount - p_period.held_amount;
  v_reason    text;
begin
  if p_budget.frozen_at is not null then
    v_reason := 'frozen';
  elsif p_budget.unit <> p_price ->> 'unit' then
    return jsonb_build_object('reason', 'unpriced', 'budgetId', p_budget.budget_id, 'dimension', 'unit of account',
      'detail', format('the route is priced in %s and the budget counts %s', p_price ->> 'unit', p_budget.unit));
  elsif v_needed = 0 and (p_price ->> 'is_free')::boolean then
    return null;
  elsif v_needed > 9223372036854775807 or v_needed > p_budget.limit_amount then
    v_reason := 'exceeds_limit';
  elsif v_needed > v_available or p_period.captured_amount > p_budget.limit_amount then
    v_reason := 'exceeds_available';
  else
    return null;
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'reason', v_reason, 'budgetId', p_budget.budget_id, 'unit', p_budget.unit,
    'neededAmount', v_needed::text, 'limitAmount', p_budget.limit_amount::text,
    'availableAmount', v_available::text, 'heldAmount', p_period.held_amount::text,
    'unknownAmount', ledger.unknown_amount_of(p_period.budget_period_id)::text,
    'capturedAmount', p_period.captured_amount::text));
end;
$$;

-- Decides one hold over all budgets of a request, all or none, and keeps their locks. `p_price` is what
-- `price_hold` said. Answers {refusal} or {price, periods}.
create function ledger.decide_admission(p_account_id text, p_scopes jsonb, p_price jsonb) returns jsonb
language plpgsql as $$
declare
  v_budget_ids text[] := ledger.budgets_of_request(p_account_id, p_scopes);
  v_budget     ledger.budget;
  v_period     ledger.budget_period;
  v_refusal    jsonb;
  v_periods    bigint[] := '{}';
begin
  if cardinality(v_budget_ids) = 0 then
    return jsonb_build_object('refusal', jsonb_build_object('reason', 'budget_not_found', 'detail',
      case when exists (select 1 from ledger.account where account_id = p_account_id)
        then format('account "%s" has no budget; give it one with: holdfast budget create', p_account_id)
        else format('account "%s" is unknown; create it with: holdfast account create', p_account_id) end));
  end if;
  if p_price ? 'refused' then
    return jsonb_build_object('refusal', jsonb_build_object(
      'reason', p_price ->> 'refused', 'dimension', p_price ->> 'dimension',
      'detail', format('route "%s" has no rate or no bound for %s', p_price ->> 'route', p_price ->> 'dimension')));
  end if;

  perform ledger.lock_budgets(v_budget_ids);
  for v_budget in select * from ledger.budget where budget_id = any (v_budget_ids) order by budget_id loop
    v_period := ledger.period_of(v_budget);
    if not ledger.counters_agree(v_period) then
      update ledger.budget set frozen_at = ledger.now() where budget_id = v_budget.budget_id returning * into v_budget;
      perform ledger.raise_alert('books_disagree', null, null, jsonb_build_object('budgetId', v_budget.budget_id));
    end if;
    v_refusal := coalesce(v_refusal, ledger.refusal_of(v_budget, v_period, p_price));
    v_periods := v_periods || v_period.budget_period_id;
  end loop;
  if v_refusal is not null then
    return jsonb_build_object('refusal', v_refusal);
  end if;
  return jsonb_build_object('price', p_price, 'periods', to_jsonb(v_periods));
end;
$$;

create function ledger.store_refusal(
  p_account_id text, p_operation_id text, p_route text, p_refusal jsonb
) returns void
language sql volatile as $$
  insert into ledger.refusal
    (operation_key, reason, budget_id, account_id, operation_id, route, numbers, first_at, last_at)
  values
    (ledger.operation_key_of(p_account_id, p_operation_id), p_refusal ->> 'reason',
     coalesce(p_refusal ->> 'budgetId', ''), p_account_id, p_operation_id, coalesce(p_route, ''), p_refusal,
     ledger.now(), ledger.now())
  on conflict (operation_key, reason, budget_id) do update
  set refusal_count = refusal.refusal_count + 1, last_at = excluded.last_at, numbers = excluded.numbers,
      route = excluded.route, last_real_at = excluded.last_real_at;
$$;

-- Stores one admitted attempt with its holds. The operation's row exists already.
create function ledger.open_attempt(
  p_operation_key text, p_offer jsonb, p_ask_id text, p_admission jsonb
) returns integer
language plpgsql as $$
declare
  v_no      integer;
  v_amount  bigint := (p_admission -> 'price' ->> 'amount')::bigint;
  v_now     timestamptz := ledger.now();
  v_before  timestamptz := v_now + (p_offer -> 'timings' ->> 'dispatchBeforeMs')::bigint * interval '1 millisecond';
  v_posting bigint;
  v_period  bigint;
begin
  select coalesce(max(attempt_no), 0) + 1 into v_no from ledger.attempt where operation_key = p_operation_key;
  insert into ledger.attempt
    (operation_key, attempt_no, route, provider, offer, price_version_id, unit, amount, phase, ask_id,
     dispatch_before, next_question_due_at, admitted_at)
  values
    (p_operation_key, v_no, p_offer ->> 'route', p_offer ->> 'provider', p_offer,
     (p_admission -> 'price' ->> 'price_version_id')::bigint, p_admission -> 'price' ->> 'unit', v_amount,
     'not_sent', p_ask_id, v_before, v_before, v_now);
  update ledger.operation set fallback_before = coalesce(fallback_before, v_before) where operation_key = p_operation_key;

  v_posting := ledger.open_posting('hold_placed', p_operation_key, v_no, null);
  for v_period in select value::bigint from jsonb_array_elements_text(p_admission -> 'periods') loop
    insert into ledger.hold (operation_key, attempt_no, budget_period_id, amount)
    values (p_operation_key, v_no, v_period, v_amount);
    perform ledger.post(v_posting, v_period, 0, v_amount, 0);
  end loop;
  return v_no;
end;
$$;

-- Why an asking with these terms is not this operation's; null when it is.
create function ledger.terms_problem(p_operation ledger.operation, p_terms jsonb) returns jsonb
language plpgsql as $$
begin
  if p_operation.terms = p_terms then
    return null;
  end if;
  return jsonb_build_object(
    'reason', 'key_reused', 'detail', format('operation "%s" of account "%s" exists with other %s',
      p_operation.operation_id, p_operation.account_id,
      (select string_agg(key, ', ' order by key) from jsonb_each(p_terms)
       where p_operation.terms -> key is distinct from value)));
end;
$$;

-- Whether a stored operation is the one that is asked for. Answers {status, refusal?, snapshot?}; status is `same`,
-- `other` or `not_found`. It admits nothing.
create function ledger.compare_terms(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_operation ledger.operation;
  v_problem   jsonb;
begin
  select * into v_operation from ledger.operation
  where operation_key = ledger.operation_key_of(p ->> 'account', p ->> 'operation');
  if not found then
    return jsonb_build_object('status', 'not_found');
  end if;
  v_problem := ledger.terms_problem(v_operation, p -> 'terms');
  if v_problem is not null then
    return jsonb_build_object('status', 'other', 'refusal', v_problem);
  end if;
  return jsonb_build_object('status', 'same', 'snapshot', ledger.snapshot(v_operation.operation_key));
end;
$$;

-- What an id that exists is answered, before budgets, prices or freezes are read. Null: every
-- attempt was withdrawn without a wish to stop, so it may be admitted anew.
create function ledger.answer_existing(p_operation ledger.operation, p jsonb) returns jsonb
language plpgsql as $$
declare
  v_key     text := p_operation.operation_key;
  v_problem jsonb := ledger.terms_problem(p_operation, p -> 'terms');
begin
  if v_problem is not null then
    return jsonb_build_object('status', 'refused', 'refusal', v_problem);
  end if;
  if p_operation.outcome in ('released') and not exists (
    select 1 from ledger.attempt where operation_key = v_key and phase <> 'withdrawn') then
    return null;
  end if;
  if p_operation.closed_at is not null then
    return jsonb_build_object('status', 'closed', 'snapshot', ledger.snapshot(v_key));
  end if;
  update ledger.attempt set ask_id = p ->> 'ask' where operation_key = v_key and ended_at is null and ask_id <> p ->> 'ask';
  return jsonb_build_object('status', 'exists', 'snapshot', ledger.snapshot(v_key));
end;
$$;

-- Places the hold of an operation's first attempt. Answers {status, snapshot?, refusal?}; status is
-- `placed`, `exists`, `closed`, `refused`, `ask_ended` or `ledger_untrusted`. Repeating it is safe.
create function ledger.place_hold(p jsonb) returns jsonb
language plpgsql security definer set search_path = ledger, pg_temp as $$
declare
  v_key       text := ledger.operation_key_of(p ->> 'account', p ->> 'operation');
  v_offer     jsonb := p -> 'chain' -> 'routes' -> 0;
  v_operation ledger.operation;
  v_answer    jsonb;
  v_exists    boolean;
begin
  if not ledger.is_trusted() then
    return jsonb_build_object('status', 'ledger_untrusted');
  end if;
  perform ledger.lock_operation(v_key);
  if exists (select 1 from ledger.ask where operation_key = v_key and ask_id = p ->> 'ask' and ended_at is not null) then
    return jsonb_build_object('status', 'ask_ended');
  end if;
  select * into v_operation from ledger.operation where operation_key = v_key for update;
  v_exists := found;
  if v_exists then
    v_answer := ledger.answer_existing(v_operation, p);
    if v_answer is not null then
      return v_answer;
    end if;
  end if;

  v_answer := ledger.decide_admission(p ->> 'account', p -> 'scopes', ledger.price_hold(p -> 'chain', v_offer));
  if v_answer ? 'refusal' then
    perform ledger.store_refusal(p ->> 'account', p ->> 'operation', v_offer ->> 'route', v_answer -> 'refusal');
    return jsonb_build_object('status', 'refused', 'refusal', v_answer -> 'refusal');
  end if;

  insert into ledger.ask (operation_key, ask_id, recorded_at) values (v_key, p ->> 'ask', ledger.now())
  on conflict do nothing;
  if p ->> 'request_text' is not null then
    perform ledger.put_body(p ->> 'request_digest', p ->> 'request_text');
  end if;
  if v_exists then
    update ledger.operation
    set chain = p -> 'chain', scopes = p -> 'scopes', fallback_before = null
    where operation_key = v_key;
  else
    insert into ledger.operation
      (operation_key, account_id, operation_id, kind, workflow_id, task_id, terms, scopes, chain, request_digest, state, created_at)
    values
      (v_key, p ->> 'account', p ->> 'operation', p ->> 'kind', p ->> 'workflow', p -> 'scopes' ->> 'taskId', p -> 'terms',
       p -> 'scopes', p -> 'chain', p ->> 'request_digest', 'new', ledger.now());
  end if;
  perform ledger.advance(v_key, 'hold_placed', ledger.open_attempt(v_key, v_offer, p ->> 'ask', v_answer), null,
    jsonb_build_object('amount', v_answer -> 'price' ->> 'amount', 'unit', v_answer -> 'price' ->> 'unit',
                       'route', v_offer ->> 'route', 'ask', p ->> 'ask'));
  return jsonb_build_object('status', 'placed', 'snapshot', ledger.snapshot(v_key));
end;
$$;
