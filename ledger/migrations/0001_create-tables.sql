-- The tables of the ledger
-- ------------------------
-- The truth about money. Functions write, views read; nobody else touches a row.
-- Amounts are whole numbers of the smallest unit of a budget (nano-dollars or credits), never
-- negative; the direction is said by the entry.

create schema if not exists ledger;

-- Who this ledger is. `system_identifier` ties it to one database cluster: a copy that runs
-- elsewhere is untrusted from its first statement. The clock can be moved in a test database only.
create table ledger.identity (
  only_row          boolean     primary key default true check (only_row),
  ledger_id         uuid        not null default gen_random_uuid(),
  system_identifier bigint      not null,
  is_test           boolean     not null,
  clock_offset      interval    not null default interval '0' check (is_test or clock_offset = interval '0'),
  created_at        timestamptz not null default clock_timestamp()
);

create table ledger.account (
  account_id   text        primary key check (account_id ~ '^[^[:cntrl:]]{1,200}$'),
  team         text        check (team ~ '^[^[:cntrl:]]{1,200}$'),
  organisation text        check (organisation ~ '^[^[:cntrl:]]{1,200}$'),
  created_at   timestamptz not null
);

-- `limit_amount` null is *no limit*, which is not the same as a very high one.
create table ledger.budget (
  budget_id    text        primary key check (budget_id ~ '^[^[:cntrl:]]{1,200}$'),
  unit         text        not null check (unit in ('usd', 'credit')),
  limit_amount bigint      check (limit_amount >= 0),
  period_kind  text        not null check (period_kind in ('none', 'day', 'week', 'month')),
  time_zone    text        not null,
  frozen_at    timestamptz,
  created_at   timestamptz not null
);

create table ledger.budget_scope (
  kind      text not null check (kind in ('account', 'team', 'organisation', 'tag', 'end_user', 'task')),
  -- Of a task's own budget it is `account/task`: somebody else's work under the same task id is not charged to it.
  value     text not null check (value ~ '^[^[:cntrl:]]+$' and length(value) <= 400),
  budget_id text not null references ledger.budget,
  primary key (kind, value, budget_id)
);

-- The counters of one budget in one period: a projection of its entries, and the hot row, so it is
-- touched last and no index covers what changes. A charge may exceed the limit and must stay
-- bookable, so the limit is compared at admission and not by a check here.
create table ledger.budget_period (
  budget_period_id bigint      generated always as identity primary key,
  budget_id        text        not null references ledger.budget,
  period_key       text        not null,
  starts_at        timestamptz,
  ends_at          timestamptz,
  limit_amount     bigint      not null default 0 check (limit_amount >= 0),
  captured_amount  bigint      not null default 0 check (captured_amount >= 0),
  held_amount      bigint      not null default 0 check (held_amount >= 0),
  overrun_amount   bigint      not null default 0 check (overrun_amount >= 0),
  last_entry_no    bigint      not null default 0,
  unique (budget_id, period_key)
) with (fillfactor = 50);

-- Immutable versions of what a route costs. The newest one whose `valid_from` has come is in force.
create table ledger.price_version (
  price_version_id bigint      generated always as identity primary key,
  route            text        not null check (route ~ '^[^[:cntrl:]]{1,200}$'),
  unit             text        not null check (unit in ('usd', 'credit')),
  valid_from       timestamptz not null,
  recorded_at      timestamptz not null
);
create index on ledger.price_version (route, valid_from desc, price_version_id desc);

-- `per_count` divides a million, so that a sum of products has one exact denominator.
create table ledger.price (
  price_version_id bigint not null references ledger.price_version,
  dimension        text   not null check (dimension ~ '^[a-z_]{1,64}$'),
  rate_amount      bigint not null check (rate_amount >= 0),
  per_count        bigint not null check (per_count in (1, 1000, 1000000)),
  primary key (price_version_id, dimension)
);

create table ledger.evidence (
  evidence_id bigint      generated always as identity primary key,
  source      text        not null check (source in ('response', 'lookup', 'webhook', 'import',
                                                     'invoice', 'operator', 'fence', 'transport')),
  reference   text        not null check (reference <> ''),
  digest      text,
  status      text,
  usage       jsonb,
  recorded_at timestamptz not null
);

-- Texts of requests and answers. Everything else refers to them by digest, and they can be purged.
create table ledger.body (
  digest      text        primary key check (digest ~ '^sha256:[0-9a-f]{64}$'),
  content     text        not null,
  byte_count  integer     not null,
  recorded_at timestamptz not null
);

create table ledger.operation (
  operation_key    text        primary key check (operation_key ~ '^[0-9a-f]{32}$'),
  account_id       text        not null references ledger.account,
  operation_id     text        not null check (operation_id ~ '^[^[:cntrl:]]{1,200}$'),
  kind             text        not null check (kind in ('call', 'job')),
  workflow_id      text        not null,
  task_id          text,
  terms            jsonb       not null,
  scopes           jsonb       not null,
  chain            jsonb       not null,
  request_digest   text        not null,
  answer_digest    text,
  state            text        not null check (state in ('new', 'held', 'dispatched', 'unknown', 'settled', 'released')),
  outcome          text        check (outcome in ('settled', 'released', 'refused', 'stopped')),
  cancel           text        not null default 'none'
    check (cancel in ('none', 'requested', 'acknowledged', 'confirmed_stopped', 'refused', 'unsupported', 'not_honoured')),
  execution_status text        not null default 'not_started'
    check (execution_status in ('not_started', 'running', 'completed', 'cancelled', 'failed', 'unknown')),
  fallback_before  timestamptz,
  cancel_requested_at timestamptz,
  cancel_sent_count   integer     not null default 0,
  cancel_last_answer  text,
  restarted_at     timestamptz,
  last_event_no    bigint      not null default 0,
  created_at       timestamptz not null,
  closed_at        timestamptz,
  unique (account_id, operation_id),
  check ((state in ('settled', 'released')) = (outcome is not null)),
  check ((outcome is null) = (closed_at is null)),
  check ((cancel = 'none') = (cancel_requested_at is null))
) with (fillfactor = 70);
create index on ledger.operation (created_at desc);
create index on ledger.operation (task_id) where task_id is not null;
create index on ledger.operation (state, created_at desc) where closed_at is null;

-- One send. Evidence ends one attempt's hold and no other. From `replayed_at` on, when its create was first repeated
-- as a question, what its own sender did proves nothing any more: the repeat may be what the provider heard.
create table ledger.attempt (
  operation_key        text        not null references ledger.operation,
  attempt_no           integer     not null check (attempt_no >= 1),
  attempt_key          text        not null generated always as (operation_key || '-' || attempt_no) stored unique,
  route                text        not null,
  provider             text        not null,
  offer                jsonb       not null,
  price_version_id     bigint      not null references ledger.price_version,
  unit                 text        not null,
  amount               bigint      not null check (amount >= 0),
  floor_amount         bigint      not null default 0 check (floor_amount >= 0),
  charged_amount       bigint      check (charged_amount >= 0),
  phase                text        not null
    check (phase in ('not_sent', 'sending', 'in_flight', 'unknown', 'withdrawn', 'free', 'charged')),
  ask_id               text        not null,
  claim                uuid,
  dispatch_before      timestamptz not null,
  send_until           timestamptz,
  answer_due_at        timestamptz,
  replayed_at          timestamptz,
  remote_id            text,
  has_trace            boolean     not null default false,
  reasons              jsonb       not null default '[]',
  unknown_since        timestamptz,
  question_count       integer     not null default 0,
  last_answer          text,
  next_question_due_at timestamptz,
  proof                text        check (proof in ('never_sent', 'no_connection', 'documented_rejection',
                                                    'fenced_absence', 'charged_zero')),
  priced_by            text        check (priced_by in ('provider', 'price_book')),
  end_evidence_id      bigint      references ledger.evidence,
  admitted_at          timestamptz not null,
  ended_at             timestamptz,
  primary key (operation_key, attempt_no),
  check ((phase in ('withdrawn', 'free', 'charged')) = (end_evidence_id is not null)),
  check ((phase in ('withdrawn', 'free', 'charged')) = (ended_at is not null)),
  check ((phase in ('withdrawn', 'free')) = (proof is not null)),
  check ((phase = 'charged') = (charged_amount is not null)),
  check ((phase = 'charged') = (priced_by is not null)),
  check (phase <> 'sending' or (claim is not null and send_until is not null and answer_due_at is not null)),
  check (phase <> 'unknown' or unknown_since is not null),
  check ((ended_at is null) = (next_question_due_at is not null))
) with (fillfactor = 70);
create index on ledger.attempt (next_question_due_at) where next_question_due_at is not null;

-- What one attempt, or one part of it, holds on one budget period.
create table ledger.hold (
  hold_id          bigint      generated always as identity primary key,
  operation_key    text        not null,
  attempt_no       integer     not null,
  part             text        not null default '',
  budget_period_id bigint      not null references ledger.budget_period,
  amount           bigint      not null check (amount >= 0),
  captured_amount  bigint      not null default 0 check (captured_amount >= 0),
  ended_at         timestamptz,
  foreign key (operation_key, attempt_no) references ledger.attempt,
  unique (operation_key, attempt_no, part, budget_period_id)
);
create index on ledger.hold (budget_period_id) where ended_at is null;

-- Who asked, and whether the asking has ended. An ended ask can place and send nothing.
create table ledger.ask (
  operation_key text        not null,
  ask_id        text        not null check (ask_id <> ''),
  recorded_at   timestamptz not null,
  ended_at      timestamptz,
  primary key (operation_key, ask_id)
);

-- The state machine as data. A transition that is not a row here cannot be stored.
create table ledger.legal_transition (
  from_state text not null,
  to_state   text not null,
  primary key (from_state, to_state)
);

insert into ledger.legal_transition (from_state, to_state) values
  ('new',        'held'),
  ('new',        'unknown'),     -- recover only
  ('held',       'dispatched'),
  ('held',       'released'),    -- never sent
  ('held',       'unknown'),     -- recover only
  ('dispatched', 'settled'),
  ('dispatched', 'released'),    -- provider said: not charged
  ('dispatched', 'unknown'),     -- no answer
  ('dispatched', 'held'),        -- every other attempt was withdrawn
  ('unknown',    'dispatched'),  -- it answers again: still running
  ('unknown',    'settled'),
  ('unknown',    'released'),
  ('unknown',    'held'),
  ('released',   'held');        -- admitted anew: every other attempt was withdrawn

-- Append-only. Each row starts where the row before it ended; the key to itself says so. An event
-- that changes no state (a question, a duplicate) starts and ends in the same one.
create table ledger.operation_event (
  operation_key   text        not null references ledger.operation,
  event_no        bigint      not null check (event_no >= 1),
  previous_no     bigint      generated always as (nullif(event_no - 1, 0)) stored,
  kind            text        not null,
  from_state      text        not null check (event_no > 1 or from_state = 'new'),
  to_state        text        not null,
  step_from       text        generated always as (case when from_state <> to_state then from_state end) stored,
  attempt_no      integer,
  evidence_id     bigint      references ledger.evidence,
  detail          jsonb       not null,
  recorded_at     timestamptz not null,
  real_at         timestamptz not null default clock_timestamp(),
  primary key (operation_key, event_no),
  unique (operation_key, event_no, to_state),
  foreign key (step_from, to_state) references ledger.legal_transition,
  foreign key (operation_key, previous_no, from_state)
    references ledger.operation_event (operation_key, event_no, to_state)
);

create table ledger.posting (
  posting_id    bigint      generated always as identity primary key,
  kind          text        not null check (kind in ('limit_set', 'hold_placed', 'hold_raised', 'hold_returned', 'hold_captured')),
  operation_key text        references ledger.operation,
  attempt_no    integer,
  evidence_id   bigint      references ledger.evidence,
  recorded_at   timestamptz not null,
  -- A hold goes back, or becomes a charge, only with evidence.
  check (kind not in ('hold_returned', 'hold_captured') or evidence_id is not null)
);

-- The lines of a posting. `entry_no` has no gap within a budget period; `entry_id` may have.
create table ledger.entry (
  entry_id         bigint      generated always as identity primary key,
  random_id        uuid        not null default gen_random_uuid(),
  posting_id       bigint      not null references ledger.posting,
  budget_period_id bigint      not null references ledger.budget_period,
  entry_no         bigint      not null check (entry_no >= 1),
  account          text        not null check (account in ('limit', 'available', 'held', 'captured')),
  direction        smallint    not null check (direction in (-1, 1)),
  amount           bigint      not null check (amount > 0),
  balance_after    bigint      not null,
  recorded_at      timestamptz not null,
  real_at          timestamptz not null default clock_timestamp(),
  unique (budget_period_id, entry_no)
);
create index on ledger.entry (budget_period_id, account, entry_no desc);
create index on ledger.entry (posting_id);

-- The total that a provider stated for one attempt or part. The newest revision stands.
create table ledger.charge_report (
  provider      text        not null,
  operation_key text        not null,
  attempt_no    integer     not null,
  part          text        not null default '',
  revision      integer     not null check (revision >= 1),
  basis         text        not null check (basis in ('final', 'lower_bound', 'upper_bound')),
  total_amount  bigint      not null check (total_amount >= 0),
  priced_by     text        not null check (priced_by in ('provider', 'price_book')),
  is_booked     boolean     not null,
  evidence_id   bigint      not null references ledger.evidence,
  recorded_at   timestamptz not null,
  primary key (provider, operation_key, attempt_no, part, revision),
  foreign key (operation_key, attempt_no) references ledger.attempt
);

create table ledger.unmatched_report (
  unmatched_report_id bigint      generated always as identity primary key,
  provider            text        not null,
  attempt_key         text        not null,
  report              jsonb       not null,
  recorded_at         timestamptz not null
);

-- Why an ask was refused, with the numbers of that instant. A caller that loops is counted.
create table ledger.refusal (
  operation_key text        not null,
  reason        text        not null,
  budget_id     text        not null default '',
  account_id    text        not null,
  operation_id  text        not null,
  route         text        not null,
  numbers       jsonb       not null,
  refusal_count integer     not null default 1,
  first_at      timestamptz not null,
  last_at       timestamptz not null,
  last_real_at  timestamptz not null default clock_timestamp(),
  primary key (operation_key, reason, budget_id)
);

create table ledger.operator_action (
  operator_action_id bigint      generated always as identity primary key,
  action             text        not null,
  subject            text        not null,
  actor              text        not null check (actor <> ''),
  reason             text        not null check (reason <> ''),
  detail             jsonb       not null,
  recorded_at        timestamptz not null
);

-- What a person must look at, once a kind and subject. `raised_in` is the transaction that raised it, so that whoever
-- called can tell what is new. The counter, the log line and the search attribute all come from here.
create table ledger.alert (
  alert_id      bigint      generated always as identity primary key,
  alert_key     text        not null unique,
  kind          text        not null check (kind in (
    'stuck_hold', 'cancel_not_confirmed', 'cancel_not_honoured', 'status_regressed', 'overrun', 'charge_after_end',
    'inconsistent_usage', 'price_missing', 'retention_lapsed', 'supervisor_restarted', 'supervisor_stuck',
    'supervisor_paused', 'unmatched_report', 'books_disagree')),
  operation_key text        references ledger.operation,
  attempt_no    integer,
  budget_id     text        references ledger.budget,
  detail        jsonb       not null,
  raised_in     xid8        not null default pg_current_xact_id(),
  recorded_at   timestamptz not null,
  real_at       timestamptz not null default clock_timestamp()
);
create index on ledger.alert (operation_key);

-- Append-only is a privilege of the role, and for everybody else a trigger.
create function ledger.refuse_change() returns trigger
language plpgsql as $$
begin
  raise exception 'ledger.% is append-only: % is refused', tg_table_name, tg_op using errcode = 'LG002';
end;
$$;

do $$
declare
  v_table text;
begin
  foreach v_table in array array['legal_transition', 'operation_event', 'posting', 'entry', 'evidence',
                                 'charge_report', 'unmatched_report', 'price_version', 'price', 'operator_action', 'alert']
  loop
    execute format(
      'create trigger refuse_change before update or delete on ledger.%I for each row execute function ledger.refuse_change()',
      v_table);
    execute format(
      'create trigger refuse_truncate before truncate on ledger.%I for each statement execute function ledger.refuse_change()',
      v_table);
  end loop;
end;
$$;
