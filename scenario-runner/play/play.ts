// Play
// ----
// One scenario on one stage: what every step needs to know, and what was seen so far.

import type {
  AdmitAnswer,
  OperationHandle,
  OperationInput,
} from '../../client/operation-handle.js';
import type { TaskHandle } from '../../client/task-handle.js';
import type { OperationKind } from '../../domain/identity.js';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { readOperation } from '../../ledger/read.js';
import { accountsOf } from '../language/check-references.js';
import type { Scenario } from '../language/scenario.js';
import type { CallStep, JobStep, TaskStepOf } from '../language/steps.js';
import type { Check } from './check.js';
import type { NameOf } from './settings.js';
import type { Stage } from './stage.js';

/** A call or a job, asked for by a step or as a step of a task. */
export interface PlayedCall {
  readonly name: string;
  readonly kind: OperationKind;
  /** Undefined for an operation of a task. */
  readonly step: CallStep | JobStep | undefined;
  readonly input: OperationInput;
  readonly accountId: string;
  readonly operationId: string;
  readonly handle: OperationHandle;
  /** Undefined until it is heard. */
  verdict: AdmitAnswer | undefined;
}

export interface PlayedTask {
  readonly step: TaskStepOf;
  readonly taskId: string;
  readonly handle: TaskHandle;
}

/** What only a play with servers of its own can do. */
export interface OwnServers {
  stop(server: 'postgres' | 'temporal'): Promise<void>;
  start(server: 'postgres' | 'temporal'): Promise<void>;
  /** Throws the whole database of Temporal away and starts an empty one in its place. */
  loseTemporal(): Promise<void>;
}

export interface Play {
  readonly scenario: Scenario;
  readonly stage: Stage;
  readonly nameOf: NameOf;
  readonly calls: Map<string, PlayedCall>;
  readonly tasks: Map<string, PlayedTask>;
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

/** The workflow of a call, a job or a task. */
export function workflowIdOf(play: Play, name: string): string {
  return play.tasks.get(name)?.handle.workflowId ?? callOf(play, name).handle.workflowId;
}

export function accountOf(play: Play, step: { readonly account?: string | undefined }): string {
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
