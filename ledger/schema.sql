-- Made from a migrated database; do not edit.

table account
  account_id text not null
table account
  team text
table account
  organisation text
table account
  created_at timestamp with time zone not null
table alert
  alert_id bigint not null identity
table alert
  alert_key text not null
table alert
  kind text not null
table alert
  operation_key text
table alert
  attempt_no integer
table alert
  budget_id text
table alert
  detail jsonb not null
table alert
  raised_in xid8 not null default pg_current_xact_id()
table alert
  recorded_at timestamp with time zone not null
table alert
  real_at timestamp with time zone not null default clock_timestamp()
table ask
  operation_key text not null
table ask
  ask_id text not null
table ask
  recorded_at timestamp with time zone not null
table ask
  ended_at timestamp with time zone
table attempt
  operation_key text not null
table attempt
  attempt_no integer not null
table attempt
  attempt_key text not null generated default ((operation_key || '-'::text) || attempt_no)
table attempt
  route text not null
table attempt
  provider text not null
table attempt
  offer jsonb not null
table attempt
  price_version_id bigint not null
table attempt
  unit text not null
table attempt
  amount bigint not null
table attempt
  floor_amount bigint not null default 0
table attempt
  charged_amount bigint
table attempt
  phase text not null
table attempt
  ask_id text not null
table attempt
  claim uuid
table attempt
  dispatch_before timestamp with time zone not null
table attempt
  send_until timestamp with time zone
table attempt
  answer_due_at timestamp with time zone
table attempt
  replayed_at timestamp with time zone
table attempt
  remote_id text
table attempt
  has_trace boolean not null default false
table attempt
  reasons jsonb not null default '[]'::jsonb
table attempt
  unknown_since timestamp with time zone
table attempt
  question_count integer not null default 0
table attempt
  last_answer text
table attempt
  next_question_due_at timestamp with time zone
table attempt
  proof text
table attempt
  priced_by text
table attempt
  end_evidence_id bigint
table attempt
  admitted_at timestamp with time zone not null
table attempt
  ended_at timestamp with time zone
table body
  digest text not null
table body
  content text not null
table body
  byte_count integer not null
table body
  recorded_at timestamp with time zone not null
table budget
  budget_id text not null
table budget
  unit text not null
table budget
  limit_amount bigint
table budget
  period_kind text not null
table budget
  time_zone text not null
table budget
  frozen_at timestamp with time zone
table budget
  created_at timestamp with time zone not null
table budget_period
  budget_period_id bigint not null identity
table budget_period
  budget_id text not null
table budget_period
  period_key text not null
table budget_period
  starts_at timestamp with time zone
table budget_period
  ends_at timestamp with time zone
table budget_period
  limit_amount bigint not null default 0
table budget_period
  captured_amount bigint not null default 0
table budget_period
  held_amount bigint not null default 0
table budget_period
  overrun_amount bigint not null default 0
table budget_period
  last_entry_no bigint not null default 0
table budget_scope
  kind text not null
table budget_scope
  value text not null
table budget_scope
  budget_id text not null
table charge_report
  provider text not null
table charge_report
  operation_key text not null
table charge_report
  attempt_no integer not null
table charge_report
  part text not null default ''::text
table charge_report
  revision integer not null
table charge_report
  basis text not null
table charge_report
  total_amount bigint not null
table charge_report
  priced_by text not null
table charge_report
  is_booked boolean not null
table charge_report
  evidence_id bigint not null
table charge_report
  recorded_at timestamp with time zone not null
table entry
  entry_id bigint not null identity
table entry
  random_id uuid not null default gen_random_uuid()
table entry
  posting_id bigint not null
table entry
  budget_period_id bigint not null
table entry
  entry_no bigint not null
table entry
  account text not null
table entry
  direction smallint not null
table entry
  amount bigint not null
table entry
  balance_after bigint not null
table entry
  recorded_at timestamp with time zone not null
table entry
  real_at timestamp with time zone not null default clock_timestamp()
table evidence
  evidence_id bigint not null identity
table evidence
  source text not null
table evidence
  reference text not null
table evidence
  digest text
table evidence
  status text
table evidence
  usage jsonb
table evidence
  recorded_at timestamp with time zone not null
table hold
  hold_id bigint not null identity
table hold
  operation_key text not null
table hold
  attempt_no integer not null
table hold
  part text not null default ''::text
table hold
  budget_period_id bigint not null
table hold
  amount bigint not null
table hold
  captured_amount bigint not null default 0
table hold
  ended_at timestamp with time zone
table identity
  only_row boolean not null default true
table identity
  ledger_id uuid not null default gen_random_uuid()
table identity
  system_identifier bigint not null
table identity
  is_test boolean not null
table identity
  clock_offset interval not null default '00:00:00'::interval
table identity
  created_at timestamp with time zone not null default clock_timestamp()
table legal_transition
  from_state text not null
table legal_transition
  to_state text not null
table operation
  operation_key text not null
table operation
  account_id text not null
table operation
  operation_id text not null
table operation
  kind text not null
table operation
  workflow_id text not null
table operation
  task_id text
table operation
  terms jsonb not null
table operation
  scopes jsonb not null
table operation
  chain jsonb not null
table operation
  request_digest text not null
table operation
  answer_digest text
table operation
  state text not null
table operation
  outcome text
table operation
  cancel text not null default 'none'::text
table operation
  execution_status text not null default 'not_started'::text
table operation
  fallback_before timestamp with time zone
table operation
  cancel_requested_at timestamp with time zone
table operation
  cancel_sent_count integer not null default 0
table operation
  cancel_last_answer text
table operation
  restarted_at timestamp with time zone
table operation
  last_event_no bigint not null default 0
table operation
  created_at timestamp with time zone not null
table operation
  closed_at timestamp with time zone
table operation_event
  operation_key text not null
table operation_event
  event_no bigint not null
table operation_event
  previous_no bigint generated default NULLIF((event_no - 1), 0)
table operation_event
  kind text not null
table operation_event
  from_state text not null
table operation_event
  to_state text not null
table operation_event
  step_from text generated default 
CASE
    WHEN (from_state <> to_state) THEN from_state
    ELSE NULL::text
END
table operation_event
  attempt_no integer
table operation_event
  evidence_id bigint
table operation_event
  detail jsonb not null
table operation_event
  recorded_at timestamp with time zone not null
table operation_event
  real_at timestamp with time zone not null default clock_timestamp()
table operator_action
  operator_action_id bigint not null identity
table operator_action
  action text not null
table operator_action
  subject text not null
table operator_action
  actor text not null
table operator_action
  reason text not null
table operator_action
  detail jsonb not null
table operator_action
  recorded_at timestamp with time zone not null
table posting
  posting_id bigint not null identity
table posting
  kind text not null
table posting
  operation_key text
table posting
  attempt_no integer
table posting
  evidence_id bigint
table posting
  recorded_at timestamp with time zone not null
table price
  price_version_id bigint not null
table price
  dimension text not null
table price
  rate_amount bigint not null
table price
  per_count bigint not null
table price_version
  price_version_id bigint not null identity
table price_version
  route text not null
table price_version
  unit text not null
table price_version
  valid_from timestamp with time zone not null
table price_version
  recorded_at timestamp with time zone not null
table refusal
  operation_key text not null
table refusal
  reason text not null
table refusal
  budget_id text not null default ''::text
table refusal
  account_id text not null
table refusal
  operation_id text not null
table refusal
  route text not null
table refusal
  numbers jsonb not null
table refusal
  refusal_count integer not null default 1
table refusal
  first_at timestamp with time zone not null
table refusal
  last_at timestamp with time zone not null
table refusal
  last_real_at timestamp with time zone not null default clock_timestamp()
table unmatched_report
  unmatched_report_id bigint not null identity
table unmatched_report
  provider text not null
table unmatched_report
  attempt_key text not null
table unmatched_report
  report jsonb not null
table unmatched_report
  recorded_at timestamp with time zone not null

constraint account_account_id_check on ledger.account: CHECK ((account_id ~ '^[^[:cntrl:]]{1,200}$'::text))
constraint account_organisation_check on ledger.account: CHECK ((organisation ~ '^[^[:cntrl:]]{1,200}$'::text))
constraint account_pkey on ledger.account: PRIMARY KEY (account_id)
constraint account_team_check on ledger.account: CHECK ((team ~ '^[^[:cntrl:]]{1,200}$'::text))
constraint alert_alert_key_key on ledger.alert: UNIQUE (alert_key)
constraint alert_budget_id_fkey on ledger.alert: FOREIGN KEY (budget_id) REFERENCES ledger.budget(budget_id)
constraint alert_kind_check on ledger.alert: CHECK ((kind = ANY (ARRAY['stuck_hold'::text, 'cancel_not_confirmed'::text, 'cancel_not_honoured'::text, 'status_regressed'::text, 'overrun'::text, 'charge_after_end'::text, 'inconsistent_usage'::text, 'price_missing'::text, 'retention_lapsed'::text, 'supervisor_restarted'::text, 'supervisor_stuck'::text, 'supervisor_paused'::text, 'unmatched_report'::text, 'books_disagree'::text])))
constraint alert_operation_key_fkey on ledger.alert: FOREIGN KEY (operation_key) REFERENCES ledger.operation(operation_key)
constraint alert_pkey on ledger.alert: PRIMARY KEY (alert_id)
constraint ask_ask_id_check on ledger.ask: CHECK ((ask_id <> ''::text))
constraint ask_pkey on ledger.ask: PRIMARY KEY (operation_key, ask_id)
constraint attempt_amount_check on ledger.attempt: CHECK ((amount >= 0))
constraint attempt_attempt_key_key on ledger.attempt: UNIQUE (attempt_key)
constraint attempt_attempt_no_check on ledger.attempt: CHECK ((attempt_no >= 1))
constraint attempt_charged_amount_check on ledger.attempt: CHECK ((charged_amount >= 0))
constraint attempt_check on ledger.attempt: CHECK (((phase = ANY (ARRAY['withdrawn'::text, 'free'::text, 'charged'::text])) = (end_evidence_id IS NOT NULL)))
constraint attempt_check1 on ledger.attempt: CHECK (((phase = ANY (ARRAY['withdrawn'::text, 'free'::text, 'charged'::text])) = (ended_at IS NOT NULL)))
constraint attempt_check2 on ledger.attempt: CHECK (((phase = ANY (ARRAY['withdrawn'::text, 'free'::text])) = (proof IS NOT NULL)))
constraint attempt_check3 on ledger.attempt: CHECK (((phase = 'charged'::text) = (charged_amount IS NOT NULL)))
constraint attempt_check4 on ledger.attempt: CHECK (((phase = 'charged'::text) = (priced_by IS NOT NULL)))
constraint attempt_check5 on ledger.attempt: CHECK (((phase <> 'sending'::text) OR ((claim IS NOT NULL) AND (send_until IS NOT NULL) AND (answer_due_at IS NOT NULL))))
constraint attempt_check6 on ledger.attempt: CHECK (((phase <> 'unknown'::text) OR (unknown_since IS NOT NULL)))
constraint attempt_check7 on ledger.attempt: CHECK (((ended_at IS NULL) = (next_question_due_at IS NOT NULL)))
constraint attempt_end_evidence_id_fkey on ledger.attempt: FOREIGN KEY (end_evidence_id) REFERENCES ledger.evidence(evidence_id)
constraint attempt_floor_amount_check on ledger.attempt: CHECK ((floor_amount >= 0))
constraint attempt_operation_key_fkey on ledger.attempt: FOREIGN KEY (operation_key) REFERENCES ledger.operation(operation_key)
constraint attempt_phase_check on ledger.attempt: CHECK ((phase = ANY (ARRAY['not_sent'::text, 'sending'::text, 'in_flight'::text, 'unknown'::text, 'withdrawn'::text, 'free'::text, 'charged'::text])))
constraint attempt_pkey on ledger.attempt: PRIMARY KEY (operation_key, attempt_no)
constraint attempt_price_version_id_fkey on ledger.attempt: FOREIGN KEY (price_version_id) REFERENCES ledger.price_version(price_version_id)
constraint attempt_priced_by_check on ledger.attempt: CHECK ((priced_by = ANY (ARRAY['provider'::text, 'price_book'::text])))
constraint attempt_proof_check on ledger.attempt: CHECK ((proof = ANY (ARRAY['never_sent'::text, 'no_connection'::text, 'documented_rejection'::text, 'fenced_absence'::text, 'charged_zero'::text])))
constraint body_digest_check on ledger.body: CHECK ((digest ~ '^sha256:[0-9a-f]{64}$'::text))
constraint body_pkey on ledger.body: PRIMARY KEY (digest)
constraint budget_budget_id_check on ledger.budget: CHECK ((budget_id ~ '^[^[:cntrl:]]{1,200}$'::text))
constraint budget_limit_amount_check on ledger.budget: CHECK ((limit_amount >= 0))
constraint budget_period_kind_check on ledger.budget: CHECK ((period_kind = ANY (ARRAY['none'::text, 'day'::text, 'week'::text, 'month'::text])))
constraint budget_pkey on ledger.budget: PRIMARY KEY (budget_id)
constraint budget_unit_check on ledger.budget: CHECK ((unit = ANY (ARRAY['usd'::text, 'credit'::text])))
constraint budget_period_budget_id_fkey on ledger.budget_period: FOREIGN KEY (budget_id) REFERENCES ledger.budget(budget_id)
constraint budget_period_budget_id_period_key_key on ledger.budget_period: UNIQUE (budget_id, period_key)
constraint budget_period_captured_amount_check on ledger.budget_period: CHECK ((captured_amount >= 0))
constraint budget_period_held_amount_check on ledger.budget_period: CHECK ((held_amount >= 0))
constraint budget_period_limit_amount_check on ledger.budget_period: CHECK ((limit_amount >= 0))
constraint budget_period_overrun_amount_check on ledger.budget_period: CHECK ((overrun_amount >= 0))
constraint budget_period_pkey on ledger.budget_period: PRIMARY KEY (budget_period_id)
constraint budget_scope_budget_id_fkey on ledger.budget_scope: FOREIGN KEY (budget_id) REFERENCES ledger.budget(budget_id)
constraint budget_scope_kind_check on ledger.budget_scope: CHECK ((kind = ANY (ARRAY['account'::text, 'team'::text, 'organisation'::text, 'tag'::text, 'end_user'::text, 'task'::text])))
constraint budget_scope_pkey on ledger.budget_scope: PRIMARY KEY (kind, value, budget_id)
constraint budget_scope_value_check on ledger.budget_scope: CHECK (((value ~ '^[^[:cntrl:]]+$'::text) AND (length(value) <= 400)))
constraint charge_report_basis_check on ledger.charge_report: CHECK ((basis = ANY (ARRAY['final'::text, 'lower_bound'::text, 'upper_bound'::text])))
constraint charge_report_evidence_id_fkey on ledger.charge_report: FOREIGN KEY (evidence_id) REFERENCES ledger.evidence(evidence_id)
constraint charge_report_operation_key_attempt_no_fkey on ledger.charge_report: FOREIGN KEY (operation_key, attempt_no) REFERENCES ledger.attempt(operation_key, attempt_no)
constraint charge_report_pkey on ledger.charge_report: PRIMARY KEY (provider, operation_key, attempt_no, part, revision)
constraint charge_report_priced_by_check on ledger.charge_report: CHECK ((priced_by = ANY (ARRAY['provider'::text, 'price_book'::text])))
constraint charge_report_revision_check on ledger.charge_report: CHECK ((revision >= 1))
constraint charge_report_total_amount_check on ledger.charge_report: CHECK ((total_amount >= 0))
constraint entry_account_check on ledger.entry: CHECK ((account = ANY (ARRAY['limit'::text, 'available'::text, 'held'::text, 'captured'::text])))
constraint entry_amount_check on ledger.entry: CHECK ((amount > 0))
constraint entry_budget_period_id_entry_no_key on ledger.entry: UNIQUE (budget_period_id, entry_no)
constraint entry_budget_period_id_fkey on ledger.entry: FOREIGN KEY (budget_period_id) REFERENCES ledger.budget_period(budget_period_id)
constraint entry_direction_check on ledger.entry: CHECK ((direction = ANY (ARRAY['-1'::integer, 1])))
constraint entry_entry_no_check on ledger.entry: CHECK ((entry_no >= 1))
constraint entry_pkey on ledger.entry: PRIMARY KEY (entry_id)
constraint entry_posting_id_fkey on ledger.entry: FOREIGN KEY (posting_id) REFERENCES ledger.posting(posting_id)
constraint evidence_pkey on ledger.evidence: PRIMARY KEY (evidence_id)
constraint evidence_reference_check on ledger.evidence: CHECK ((reference <> ''::text))
constraint evidence_source_check on ledger.evidence: CHECK ((source = ANY (ARRAY['response'::text, 'lookup'::text, 'webhook'::text, 'import'::text, 'invoice'::text, 'operator'::text, 'fence'::text, 'transport'::text])))
constraint hold_amount_check on ledger.hold: CHECK ((amount >= 0))
constraint hold_budget_period_id_fkey on ledger.hold: FOREIGN KEY (budget_period_id) REFERENCES ledger.budget_period(budget_period_id)
constraint hold_captured_amount_check on ledger.hold: CHECK ((captured_amount >= 0))
constraint hold_operation_key_attempt_no_fkey on ledger.hold: FOREIGN KEY (operation_key, attempt_no) REFERENCES ledger.attempt(operation_key, attempt_no)
constraint hold_operation_key_attempt_no_part_budget_period_id_key on ledger.hold: UNIQUE (operation_key, attempt_no, part, budget_period_id)
constraint hold_pkey on ledger.hold: PRIMARY KEY (hold_id)
constraint identity_check on ledger.identity: CHECK ((is_test OR (clock_offset = '00:00:00'::interval)))
constraint identity_only_row_check on ledger.identity: CHECK (only_row)
constraint identity_pkey on ledger.identity: PRIMARY KEY (only_row)
constraint legal_transition_pkey on ledger.legal_transition: PRIMARY KEY (from_state, to_state)
constraint operation_account_id_fkey on ledger.operation: FOREIGN KEY (account_id) REFERENCES ledger.account(account_id)
constraint operation_account_id_operation_id_key on ledger.operation: UNIQUE (account_id, operation_id)
constraint operation_cancel_check on ledger.operation: CHECK ((cancel = ANY (ARRAY['none'::text, 'requested'::text, 'acknowledged'::text, 'confirmed_stopped'::text, 'refused'::text, 'unsupported'::text, 'not_honoured'::text])))
constraint operation_check on ledger.operation: CHECK (((state = ANY (ARRAY['settled'::text, 'released'::text])) = (outcome IS NOT NULL)))
constraint operation_check1 on ledger.operation: CHECK (((outcome IS NULL) = (closed_at IS NULL)))
constraint operation_check2 on ledger.operation: CHECK (((cancel = 'none'::text) = (cancel_requested_at IS NULL)))
constraint operation_execution_status_check on ledger.operation: CHECK ((execution_status = ANY (ARRAY['not_started'::text, 'running'::text, 'completed'::text, 'cancelled'::text, 'failed'::text, 'unknown'::text])))
constraint operation_kind_check on ledger.operation: CHECK ((kind = ANY (ARRAY['call'::text, 'job'::text])))
constraint operation_operation_id_check on ledger.operation: CHECK ((operation_id ~ '^[^[:cntrl:]]{1,200}$'::text))
constraint operation_operation_key_check on ledger.operation: CHECK ((operation_key ~ '^[0-9a-f]{32}$'::text))
constraint operation_outcome_check on ledger.operation: CHECK ((outcome = ANY (ARRAY['settled'::text, 'released'::text, 'refused'::text, 'stopped'::text])))
constraint operation_pkey on ledger.operation: PRIMARY KEY (operation_key)
constraint operation_state_check on ledger.operation: CHECK ((state = ANY (ARRAY['new'::text, 'held'::text, 'dispatched'::text, 'unknown'::text, 'settled'::text, 'released'::text])))
constraint operation_event_check on ledger.operation_event: CHECK (((event_no > 1) OR (from_state = 'new'::text)))
constraint operation_event_event_no_check on ledger.operation_event: CHECK ((event_no >= 1))
constraint operation_event_evidence_id_fkey on ledger.operation_event: FOREIGN KEY (evidence_id) REFERENCES ledger.evidence(evidence_id)
constraint operation_event_operation_key_event_no_to_state_key on ledger.operation_event: UNIQUE (operation_key, event_no, to_state)
constraint operation_event_operation_key_fkey on ledger.operation_event: FOREIGN KEY (operation_key) REFERENCES ledger.operation(operation_key)
constraint operation_event_operation_key_previous_no_from_state_fkey on ledger.operation_event: FOREIGN KEY (operation_key, previous_no, from_state) REFERENCES ledger.operation_event(operation_key, event_no, to_state)
constraint operation_event_pkey on ledger.operation_event: PRIMARY KEY (operation_key, event_no)
constraint operation_event_step_from_to_state_fkey on ledger.operation_event: FOREIGN KEY (step_from, to_state) REFERENCES ledger.legal_transition(from_state, to_state)
constraint operator_action_actor_check on ledger.operator_action: CHECK ((actor <> ''::text))
constraint operator_action_pkey on ledger.operator_action: PRIMARY KEY (operator_action_id)
constraint operator_action_reason_check on ledger.operator_action: CHECK ((reason <> ''::text))
constraint posting_check on ledger.posting: CHECK (((kind <> ALL (ARRAY['hold_returned'::text, 'hold_captured'::text])) OR (evidence_id IS NOT NULL)))
constraint posting_evidence_id_fkey on ledger.posting: FOREIGN KEY (evidence_id) REFERENCES ledger.evidence(evidence_id)
constraint posting_kind_check on ledger.posting: CHECK ((kind = ANY (ARRAY['limit_set'::text, 'hold_placed'::text, 'hold_raised'::text, 'hold_returned'::text, 'hold_captured'::text])))
constraint posting_operation_key_fkey on ledger.posting: FOREIGN KEY (operation_key) REFERENCES ledger.operation(operation_key)
constraint posting_pkey on ledger.posting: PRIMARY KEY (posting_id)
constraint price_dimension_check on ledger.price: CHECK ((dimension ~ '^[a-z_]{1,64}$'::text))
constraint price_per_count_check on ledger.price: CHECK ((per_count = ANY (ARRAY[(1)::bigint, (1000)::bigint, (1000000)::bigint])))
constraint price_pkey on ledger.price: PRIMARY KEY (price_version_id, dimension)
constraint price_price_version_id_fkey on ledger.price: FOREIGN KEY (price_version_id) REFERENCES ledger.price_version(price_version_id)
constraint price_rate_amount_check on ledger.price: CHECK ((rate_amount >= 0))
constraint price_version_pkey on ledger.price_version: PRIMARY KEY (price_version_id)
constraint price_version_route_check on ledger.price_version: CHECK ((route ~ '^[^[:cntrl:]]{1,200}$'::text))
constraint price_version_unit_check on ledger.price_version: CHECK ((unit = ANY (ARRAY['usd'::text, 'credit'::text])))
constraint refusal_pkey on ledger.refusal: PRIMARY KEY (operation_key, reason, budget_id)
constraint unmatched_report_pkey on ledger.unmatched_report: PRIMARY KEY (unmatched_report_id)

CREATE INDEX alert_operation_key_idx ON ledger.alert USING btree (operation_key)
CREATE INDEX attempt_next_question_due_at_idx ON ledger.attempt USING btree (next_question_due_at) WHERE (next_question_due_at IS NOT NULL)
CREATE INDEX entry_budget_period_id_account_entry_no_idx ON ledger.entry USING btree (budget_period_id, account, entry_no DESC)
CREATE INDEX entry_posting_id_idx ON ledger.entry USING btree (posting_id)
CREATE INDEX hold_budget_period_id_idx ON ledger.hold USING btree (budget_period_id) WHERE (ended_at IS NULL)
CREATE INDEX operation_created_at_idx ON ledger.operation USING btree (created_at DESC)
CREATE INDEX operation_state_created_at_idx ON ledger.operation USING btree (state, created_at DESC) WHERE (closed_at IS NULL)
CREATE INDEX operation_task_id_idx ON ledger.operation USING btree (task_id) WHERE (task_id IS NOT NULL)
CREATE INDEX price_version_route_valid_from_price_version_id_idx ON ledger.price_version USING btree (route, valid_from DESC, price_version_id DESC)
CREATE UNIQUE INDEX account_pkey ON ledger.account USING btree (account_id)
CREATE UNIQUE INDEX alert_alert_key_key ON ledger.alert USING btree (alert_key)
CREATE UNIQUE INDEX alert_pkey ON ledger.alert USING btree (alert_id)
CREATE UNIQUE INDEX ask_pkey ON ledger.ask USING btree (operation_key, ask_id)
CREATE UNIQUE INDEX attempt_attempt_key_key ON ledger.attempt USING btree (attempt_key)
CREATE UNIQUE INDEX attempt_pkey ON ledger.attempt USING btree (operation_key, attempt_no)
CREATE UNIQUE INDEX body_pkey ON ledger.body USING btree (digest)
CREATE UNIQUE INDEX budget_period_budget_id_period_key_key ON ledger.budget_period USING btree (budget_id, period_key)
CREATE UNIQUE INDEX budget_period_pkey ON ledger.budget_period USING btree (budget_period_id)
CREATE UNIQUE INDEX budget_pkey ON ledger.budget USING btree (budget_id)
CREATE UNIQUE INDEX budget_scope_pkey ON ledger.budget_scope USING btree (kind, value, budget_id)
CREATE UNIQUE INDEX charge_report_pkey ON ledger.charge_report USING btree (provider, operation_key, attempt_no, part, revision)
CREATE UNIQUE INDEX entry_budget_period_id_entry_no_key ON ledger.entry USING btree (budget_period_id, entry_no)
CREATE UNIQUE INDEX entry_pkey ON ledger.entry USING btree (entry_id)
CREATE UNIQUE INDEX evidence_pkey ON ledger.evidence USING btree (evidence_id)
CREATE UNIQUE INDEX hold_operation_key_attempt_no_part_budget_period_id_key ON ledger.hold USING btree (operation_key, attempt_no, part, budget_period_id)
CREATE UNIQUE INDEX hold_pkey ON ledger.hold USING btree (hold_id)
CREATE UNIQUE INDEX identity_pkey ON ledger.identity USING btree (only_row)
CREATE UNIQUE INDEX legal_transition_pkey ON ledger.legal_transition USING btree (from_state, to_state)
CREATE UNIQUE INDEX operation_account_id_operation_id_key ON ledger.operation USING btree (account_id, operation_id)
CREATE UNIQUE INDEX operation_event_operation_key_event_no_to_state_key ON ledger.operation_event USING btree (operation_key, event_no, to_state)
CREATE UNIQUE INDEX operation_event_pkey ON ledger.operation_event USING btree (operation_key, event_no)
CREATE UNIQUE INDEX operation_pkey ON ledger.operation USING btree (operation_key)
CREATE UNIQUE INDEX operator_action_pkey ON ledger.operator_action USING btree (operator_action_id)
CREATE UNIQUE INDEX posting_pkey ON ledger.posting USING btree (posting_id)
CREATE UNIQUE INDEX price_pkey ON ledger.price USING btree (price_version_id, dimension)
CREATE UNIQUE INDEX price_version_pkey ON ledger.price_version USING btree (price_version_id)
CREATE UNIQUE INDEX refusal_pkey ON ledger.refusal USING btree (operation_key, reason, budget_id)
CREATE UNIQUE INDEX unmatched_report_pkey ON ledger.unmatched_report USING btree (unmatched_report_id)

CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.alert FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.charge_report FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.entry FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.evidence FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.legal_transition FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.operation_event FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.operator_action FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.posting FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.price FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.price_version FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON ledger.unmatched_report FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.alert FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.charge_report FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.entry FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.evidence FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.legal_transition FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.operation_event FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.operator_action FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.posting FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.price FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.price_version FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON ledger.unmatched_report FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()

view account_view: account_id text, team text, organisation text, created_at timestamp with time zone, budget_ids text[]
view alert_view: alert_id bigint, kind text, operation_key text, account_id text, operation_id text, attempt_no integer, budget_id text, detail jsonb, recorded_at timestamp with time zone, real_at timestamp with time zone
view attempt_view: operation_key text, account_id text, operation_id text, attempt_no integer, attempt_key text, route text, provider text, unit text, phase text, amount bigint, floor_amount bigint, charged_amount bigint, held_amount bigint, unknown_since timestamp with time zone, reasons jsonb, proof text, priced_by text, remote_id text, has_trace boolean, question_count integer, last_answer text, next_question_due_at timestamp with time zone, dispatch_before timestamp with time zone, send_until timestamp with time zone, answer_due_at timestamp with time zone, admitted_at timestamp with time zone, ended_at timestamp with time zone, evidence_source text, evidence_reference text, usage jsonb
view budget_view: budget_id text, unit text, period_kind text, period_key text, limit_amount bigint, frozen_at timestamp with time zone, captured_amount bigint, held_amount bigint, overrun_amount bigint, unknown_amount bigint, unknown_count integer, unknown_oldest timestamp with time zone, available_amount bigint, scopes jsonb
view budget_watch_view: budget_id text, unit text, created_at timestamp with time zone, limit_amount bigint, available_amount bigint, captured_amount bigint, overrun_amount bigint
view entry_view: entry_id bigint, random_id uuid, entry_no bigint, budget_period_id bigint, budget_id text, period_key text, posting_kind text, posting_id bigint, operation_key text, attempt_no integer, account text, direction smallint, amount bigint, balance_after bigint, recorded_at timestamp with time zone, real_at timestamp with time zone
view event_view: operation_key text, account_id text, operation_id text, event_no bigint, kind text, from_state text, to_state text, attempt_no integer, detail jsonb, recorded_at timestamp with time zone, real_at timestamp with time zone, evidence_source text, evidence_reference text, evidence_status text
view held_by_provider_view: budget_id text, provider text, held_amount bigint, unknown_amount bigint
view identity_view: ledger_id uuid, is_test boolean, clock_offset interval, is_trusted boolean, created_at timestamp with time zone, now timestamp with time zone
view open_attempt_view: operation_key text, attempt_no integer, provider text, is_unknown boolean, unknown_since timestamp with time zone, read_at timestamp with time zone
view open_by_cancel_view: cancel text, operation_count integer
view open_by_state_view: state text, provider text, operation_count integer
view open_operation_view: operation_key text, cancel text, state text, provider text
view operation_view: operation_key text, account_id text, operation_id text, kind text, workflow_id text, task_id text, outcome text, cancel text, execution_status text, created_at timestamp with time zone, closed_at timestamp with time zone, request_digest text, answer_digest text, cancel_requested_at timestamp with time zone, restarted_at timestamp with time zone, state text, route text, provider text, unit text, attempt_count integer, held_amount bigint, charged_amount bigint, unknown_since timestamp with time zone, next_question_due_at timestamp with time zone, remote_id text, last_answer text, needs_operator boolean, read_at timestamp with time zone
view price_view: route text, price_version_id bigint, unit text, valid_from timestamp with time zone, dimension text, rate_amount bigint, per_count bigint, is_current boolean
view refusal_view: operation_key text, account_id text, operation_id text, route text, reason text, budget_id text, numbers jsonb, refusal_count integer, first_at timestamp with time zone, last_at timestamp with time zone, last_real_at timestamp with time zone
view unknown_by_provider_view: provider text, oldest_age_s double precision
view unmatched_report_view: unmatched_report_id bigint, provider text, attempt_key text, report jsonb, recorded_at timestamp with time zone

function add_scope(p_budget_id text, p_kind text, p_value text) returns text security definer
begin
  if not exists (select 1 from ledger.budget where budget_id = p_budget_id) then
    return 'budget_not_found';
  end if;
  insert into ledger.budget_scope (kind, value, budget_id) values (p_kind, p_value, p_budget_id) on conflict do nothing;
  return case when found then 'created' else 'exists' end;
end;

function admit_next(p_operation ledger.operation, p_ended ledger.attempt, p_offer jsonb) returns jsonb
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

function advance(p_operation_key text, p_kind text, p_attempt_no integer, p_evidence_id bigint, p_detail jsonb) returns void
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

function answer_existing(p_operation ledger.operation, p jsonb) returns jsonb
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

function book_final(p_attempt ledger.attempt, p_total bigint, p_report jsonb, p_evidence_id bigint) returns text
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

function book_report(p_attempt ledger.attempt, p_report jsonb, p_evidence_id bigint) returns text
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

function book_report_safely(p_attempt ledger.attempt, p_report jsonb, p_evidence_id bigint) returns text
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

function budgets_of_attempt(p_operation_key text, p_attempt_no integer) returns text[]
begin
  return (
    select coalesce(array_agg(distinct period.budget_id), '{}')
    from ledger.hold join ledger.budget_period period using (budget_period_id)
    where hold.operation_key = p_operation_key and hold.attempt_no = p_attempt_no
  );
end;

function budgets_of_request(p_account_id text, p_scopes jsonb) returns text[] security definer
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

function capture(p_attempt ledger.attempt, p_total bigint, p_priced_by text, p_evidence_id bigint) returns void
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

function check() returns TABLE(problem text, subject text, detail text) security definer
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

function claim_restart(p jsonb) returns jsonb security definer
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

function compare_terms(p jsonb) returns jsonb security definer
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

function compute_state(p_operation_key text) returns text
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

function cost_of(p_price_version_id bigint, p_usage jsonb, OUT amount numeric, OUT unpriced_dimension text) returns record
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

function counters_agree(p_period ledger.budget_period) returns boolean
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

function create_account(p_account_id text, p_team text, p_organisation text) returns text security definer
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

function create_budget(p_budget_id text, p_unit text, p_limit_amount bigint, p_period_kind text, p_time_zone text, p_scopes jsonb) returns text security definer
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

function decide_admission(p_account_id text, p_scopes jsonb, p_price jsonb) returns jsonb
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

function end_ask(p jsonb) returns jsonb security definer
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

function end_free_and_go_on(p_operation ledger.operation, p_attempt ledger.attempt, p_proof text, p_evidence_id bigint, p jsonb) returns void
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

function end_uncharged(p_attempt ledger.attempt, p_phase text, p_proof text, p_evidence_id bigint) returns void
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

function fence_problem(p_operation ledger.operation, p_attempt ledger.attempt, p_ask_id text) returns text
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

function get_body(p_digest text) returns text security definer
  select content from ledger.body where digest = p_digest;

function give_up(p jsonb) returns jsonb security definer
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

function give_up_attempt(p_attempt ledger.attempt, p_reference text) returns void
declare
  v_evidence bigint;
begin
  v_evidence := ledger.store_evidence(jsonb_build_object('source', 'transport', 'reference', p_reference));
  perform ledger.end_uncharged(p_attempt, 'withdrawn', 'never_sent', v_evidence);
  perform ledger.advance(p_attempt.operation_key, 'given_up', p_attempt.attempt_no, v_evidence, '{}');
end;

function grant_application(p_role text) returns void
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

function is_trusted() returns boolean security definer
begin
  return (
    select (select system_identifier from pg_control_system()) = system_identifier from ledger.identity
  );
end;

function is_untraced(p_attempt ledger.attempt) returns boolean
begin
  return not p_attempt.has_trace and p_attempt.replayed_at is null;
end;

function lock_budgets(p_budget_ids text[]) returns void
begin
  perform 1 from ledger.budget where budget_id = any (p_budget_ids) order by budget_id for no key update;
end;

function lock_operation(p_operation_key text) returns void
  select pg_advisory_xact_lock(hashtextextended(p_operation_key, 0));

function mark_unknown(p jsonb) returns jsonb security definer
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

function move_clock(p_offset interval) returns void
begin
  update ledger.identity set clock_offset = clock_offset + p_offset;
end;

function needs_operator(p_operation_key text) returns boolean security definer
begin
  return (
    select exists (
      select 1 from ledger.alert join ledger.operation using (operation_key)
      where alert.operation_key = p_operation_key
        and (operation.closed_at is null or alert.kind in ('overrun', 'charge_after_end', 'cancel_not_honoured')))
  );
end;

function next_attempt(p jsonb) returns jsonb security definer
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

function next_problem(p_operation ledger.operation) returns text
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

function now() returns timestamp with time zone security definer
begin
  return (
    select clock_timestamp() + clock_offset from ledger.identity
  );
end;

function observe_execution(p_operation_key text, p_attempt_no integer, p_status text, p_evidence_id bigint) returns void
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

function open_attempt(p_operation_key text, p_offer jsonb, p_ask_id text, p_admission jsonb) returns integer
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

function open_posting(p_kind text, p_operation_key text, p_attempt_no integer, p_evidence_id bigint) returns bigint
declare
  v_posting bigint;
begin
  insert into ledger.posting (kind, operation_key, attempt_no, evidence_id, recorded_at)
  values (p_kind, p_operation_key, p_attempt_no, p_evidence_id, ledger.now())
  returning posting_id into v_posting;
  return v_posting;
end;

function open_task_budget(p_account_id text, p_task_id text, p_unit text, p_limit_amount bigint) returns text security definer
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

function operation_key_of(p_account_id text, p_operation_id text) returns text
begin
  return (
    select left(encode(sha256(convert_to(
      ledger_id::text || chr(31) || p_account_id || chr(31) || p_operation_id, 'UTF8')), 'hex'), 32)
    from ledger.identity
  );
end;

function overdue_operations(p_grace_ms bigint, p_count_max integer) returns TABLE(operation_key text, account_id text, operation_id text, kind text, workflow_id text, overdue_ms bigint, held_amount bigint, unit text) security definer
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

function period_of(p_budget ledger.budget) returns ledger.budget_period
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

function place_hold(p jsonb) returns jsonb security definer
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

function post(p_posting_id bigint, p_budget_period_id bigint, p_limit_delta bigint, p_held_delta bigint, p_captured_delta bigint) returns void
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

function price_hold(p_chain jsonb, p_offer jsonb) returns jsonb
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

function price_offer(p_offer jsonb) returns jsonb
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

function price_version_of(p_route text) returns bigint security definer
begin
  return (
    select price_version_id from ledger.price_version
    where route = p_route and valid_from <= ledger.now()
    order by valid_from desc, price_version_id desc
    limit 1
  );
end;

function put_body(p_digest text, p_content text) returns void security definer
begin
  if p_digest <> 'sha256:' || encode(sha256(convert_to(p_content, 'UTF8')), 'hex') then
    raise exception 'the digest % is not that of the body', p_digest using errcode = 'LG001';
  end if;
  insert into ledger.body (digest, content, byte_count, recorded_at)
  values (p_digest, p_content, octet_length(p_content), ledger.now())
  on conflict (digest) do nothing;
end;

function question_due(p_attempt ledger.attempt, p_delay_ms bigint) returns timestamp with time zone
begin
  return (
    select ledger.now()
      + coalesce(p_delay_ms, (p_attempt.offer -> 'timings' ->> 'questionFirstMs')::bigint) * interval '1 millisecond'
  );
end;

function raise_alert(p_kind text, p_operation_key text, p_attempt_no integer, p_detail jsonb, p_once text) returns void
begin
  insert into ledger.alert (alert_key, kind, operation_key, attempt_no, budget_id, detail, recorded_at)
  values (concat_ws('/', p_kind, coalesce(p_operation_key, p_detail ->> 'budgetId'), p_attempt_no, nullif(p_once, '')),
          p_kind, p_operation_key, p_attempt_no, p_detail ->> 'budgetId', p_detail, ledger.now())
  on conflict (alert_key) do nothing;
  if found and p_operation_key is not null then
    perform ledger.advance(p_operation_key, 'alert', p_attempt_no, null, jsonb_build_object('alert', p_kind) || p_detail);
  end if;
end;

function raise_floor(p_attempt ledger.attempt, p_floor bigint, p_evidence_id bigint, p_report jsonb) returns void
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

function read_operation(p_account_id text, p_operation_id text) returns jsonb security definer
  select ledger.snapshot(ledger.operation_key_of(p_account_id, p_operation_id));

function record_cancel_answer(p jsonb) returns jsonb security definer
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

function record_charge_report(p jsonb) returns jsonb security definer
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

function record_not_accepted(p_operation ledger.operation, p_attempt ledger.attempt, p_evidence_id bigint, p jsonb) returns text
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

function record_observation(p jsonb) returns jsonb security definer
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

function refusal_of(p_budget ledger.budget, p_period ledger.budget_period, p_price jsonb) returns jsonb
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

function refuse_change() returns trigger
begin
  raise exception 'ledger.% is append-only: % is refused', tg_table_name, tg_op using errcode = 'LG002';
end;

function replay_problem(p_operation ledger.operation, p_attempt ledger.attempt, p_window_ms bigint) returns text
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

function replay_terms(p jsonb) returns jsonb security definer
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

function request_cancel(p jsonb) returns jsonb security definer
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

function retain(p_attempt ledger.attempt, p_phase text, p_reason text, p_evidence_id bigint, p_answer text, p_delay_ms bigint) returns void
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

function set_budget_frozen(p_budget_id text, p_is_frozen boolean, p_actor text, p_reason text) returns text security definer
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

function set_price(p_route text, p_unit text, p_rates jsonb) returns text security definer
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

function set_up(p_is_test boolean) returns boolean
begin
  insert into ledger.identity (system_identifier, is_test)
  select system_identifier, p_is_test from pg_control_system()
  on conflict do nothing;
  return found;
end;

function shows_work(p_usage jsonb) returns boolean
begin
  return (
    select exists (select 1 from jsonb_each_text(coalesce(p_usage, '{}')) used
                   where used.key <> 'request' and used.value::numeric > 0)
  );
end;

function signature_of(p_function text) returns text
  select '(' || pg_get_function_identity_arguments(oid) || ')' from pg_proc
  where pronamespace = 'ledger'::regnamespace and proname = p_function;

function snapshot(p_operation_key text) returns jsonb security definer
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

function store_evidence(p_evidence jsonb, p_usage jsonb) returns bigint
declare
  v_evidence bigint;
begin
  insert into ledger.evidence (source, reference, digest, status, usage, recorded_at)
  values (p_evidence ->> 'source', p_evidence ->> 'reference', p_evidence ->> 'digest',
          p_evidence ->> 'status', p_usage, ledger.now())
  returning evidence_id into v_evidence;
  return v_evidence;
end;

function store_refusal(p_account_id text, p_operation_id text, p_route text, p_refusal jsonb) returns void
  insert into ledger.refusal
    (operation_key, reason, budget_id, account_id, operation_id, route, numbers, first_at, last_at)
  values
    (ledger.operation_key_of(p_account_id, p_operation_id), p_refusal ->> 'reason',
     coalesce(p_refusal ->> 'budgetId', ''), p_account_id, p_operation_id, coalesce(p_route, ''), p_refusal,
     ledger.now(), ledger.now())
  on conflict (operation_key, reason, budget_id) do update
  set refusal_count = refusal.refusal_count + 1, last_at = excluded.last_at, numbers = excluded.numbers,
      route = excluded.route, last_real_at = excluded.last_real_at;

function take_fence(p jsonb) returns jsonb security definer
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

function tell_of_waiting(p_operation_key text, p_attempt_no integer, p_reason text) returns void
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

function tell_paused(p jsonb) returns jsonb security definer
begin
  perform ledger.lock_operation(p ->> 'operation_key');
  perform ledger.raise_alert('supervisor_paused', p ->> 'operation_key', null, '{}');
  return jsonb_build_object('status', 'told');
end;

function terms_problem(p_operation ledger.operation, p_terms jsonb) returns jsonb
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

function unknown_amount_of(p_budget_period_id bigint) returns bigint
begin
  return (
    select coalesce(sum(hold.amount), 0)::bigint
    from ledger.hold join ledger.attempt using (operation_key, attempt_no)
    where hold.budget_period_id = p_budget_period_id and hold.ended_at is null
      and (attempt.phase = 'unknown' or (attempt.phase = 'sending' and attempt.answer_due_at <= ledger.now()))
  );
end;

function with_reason(p_reasons jsonb, p_reason text) returns jsonb
begin
  return (
    select case
      when p_reasons @> jsonb_build_array(jsonb_build_object('reason', p_reason)) then p_reasons
      else p_reasons || jsonb_build_object('reason', p_reason, 'at', ledger.now())
    end
  );
end;

function withdraw(p jsonb) returns jsonb security definer
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

function withdraw_unsent(p_operation_key text, p_reason text, p_ask_id text) returns integer
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

