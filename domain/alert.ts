// Alert
// -----
// What a person must look at. It is one thing everywhere: an event of the operation, a log line at
// `warn`, a counter, and `HoldfastNeedsOperator`. The runbook has a section for each kind.

export const ALERT_KINDS = [
  'stuck_hold',
  'cancel_not_confirmed',
  'cancel_not_honoured',
  'status_regressed',
  'overrun',
  'charge_after_end',
  'inconsistent_usage',
  'price_missing',
  'retention_lapsed',
  'supervisor_restarted',
  'supervisor_stuck',
  'supervisor_paused',
  'unmatched_report',
  'books_disagree',
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

export interface Alert {
  readonly kind: AlertKind;
  readonly attemptNo: number | null;
  readonly at: string;
  readonly detail: Readonly<Record<string, unknown>>;
  /** Raised by the very step that answered with it: whoever made that step tells people. */
  readonly isNew: boolean;
}
