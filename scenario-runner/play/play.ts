// Play
// ----
// One scenario on one stage: what every step needs to know, and what was seen so far.

import type { AdmitAnswer, CallHandle } from '../../client/holdfast-client.js';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { readOperation } from '../../ledger/read.js';
import { accountsOf } from '../language/check-references.js';
import type { Scenario } from '../language/scenario.js';
import type { CallStep } from '../language/steps.js';
import type { Check } from './check.js';
import type { NameOf } from './settings.js';
import type { Stage } from './stage.js';

export interface PlayedCall {
  readonly step: CallStep;
  readonly accountId: string;
  readonly operationId: string;
  readonly handle: CallHandle;
  /** Undefined until it is heard. */
  verdict: AdmitAnswer | undefined;
}

/** What only a play with servers of its own can do. */
export interface OwnServers {
  stop(server: 'postgres' | 'temporal'): Promise<void>;
  start(server: 'postgres' | 'temporal'): Promise<void>;
}

export interface Play {
  readonly scenario: Scenario;
  readonly stage: Stage;
  readonly nameOf: NameOf;
  readonly calls: Map<string, PlayedCall>;
  readonly checks: Check[];
  /** For people: what happened that no figure says. */
  readonly notes: string[];
  /** The provider's requests up to this number belong to somebody before us. */
  readonly fromSeq: number;
  readonly ownServers: OwnServers | undefined;
  /** Where the compiled programs are. */
  readonly distDir: string;
  readonly tell: (line: string) => void;
  /** A step has stopped Postgres: nobody can look at the books until another one starts it. */
  ledgerIsAway: boolean;
}

export function callOf(play: Play, name: string): PlayedCall {
  const call = play.calls.get(name);
  if (call === undefined) throw new RangeError(`no step calls "${name}"`);
  return call;
}

export function accountOf(play: Play, step: CallStep): string {
  return play.nameOf(step.account ?? accountsOf(play.scenario)[0] ?? '');
}

export function operationOf(play: Play, call: PlayedCall): Promise<OperationSnapshot | undefined> {
  return readOperation(play.stage.ledger, {
    accountId: call.accountId,
    operationId: call.operationId,
  });
}

export function check(play: Play, figure: Omit<Check, 'ok'> & { readonly ok?: boolean }): void {
  const { ok, ...rest } = figure;
  const done: Check = { ...rest, ok: ok ?? rest.expected === rest.actual };
  play.checks.push(done);
  play.tell(
    `${done.ok ? 'ok ' : 'OFF'} ${done.name}: ${done.actual}${done.ok ? '' : `, expected ${done.expected}`}  (${done.source})`,
  );
}
