// Telemetry
// ---------
// What the activities count while they work, for whoever watches. It decides nothing, throws nothing
// and keeps no figure about money: those are in the ledger. Every value here comes from a closed
// list or from the configuration, never from a caller: they become labels.

import type { Observation } from '../domain/observation.js';
import type { PlaceHoldAnswer } from '../ledger/admit.js';

/** What was asked of a provider: of a call its receipt, or its create once more; of a job the rest. */
type LookupKind = 'receipt' | 'replay' | 'status' | 'charge' | 'cancel';
/** Of a cancel it is what was answered to the wish. */
type LookupAnswer =
  | 'charge'
  | 'status'
  | 'not_accepted'
  | 'not_found'
  | 'no_answer'
  | 'acknowledged'
  | 'refused'
  | 'unsupported';
type AdmissionDecision = 'placed' | 'exists' | 'closed' | 'refused' | 'invalid' | 'unavailable';

interface Lookup {
  readonly provider: string;
  readonly kind: LookupKind;
  readonly answer: LookupAnswer;
}

interface Admission {
  readonly decision: AdmissionDecision;
  /** Of a refusal, or why there was no decision; else empty. */
  readonly reason: string;
  readonly durationMs: number;
}

export interface Telemetry {
  lookedUp(lookup: Lookup): void;
  admissionEnded(admission: Admission): void;
  /** `kind` is one of a short fixed list. */
  alerted(kind: string): void;
  supervisorRestarted(): void;
}

/** Where nobody watches. */
export const noTelemetry: Telemetry = {
  lookedUp: () => undefined,
  admissionEnded: () => undefined,
  alerted: () => undefined,
  supervisorRestarted: () => undefined,
};

export function answerOf(observation: Observation): LookupAnswer {
  if (observation.kind !== 'no_answer') return observation.kind;
  return observation.reason === 'not_found' ? 'not_found' : 'no_answer';
}

interface RunningAdmission {
  answered(answer: PlaceHoldAnswer): void;
  ended(decision: 'invalid' | 'unavailable', reason: string): void;
}

/** Its duration runs from here to the first of the two calls. */
export function startAdmission(telemetry: Telemetry): RunningAdmission {
  const startedAt = performance.now();
  const end = (decision: AdmissionDecision, reason: string): void => {
    telemetry.admissionEnded({ decision, reason, durationMs: performance.now() - startedAt });
  };
  return {
    ended: end,
    answered(answer) {
      switch (answer.status) {
        case 'placed':
        case 'exists':
        case 'closed':
          end(answer.status, '');
          return;
        case 'refused':
          end('refused', answer.refusal.reason);
          return;
        case 'ask_ended':
        case 'ledger_untrusted':
          end('unavailable', answer.status);
      }
    },
  };
}
