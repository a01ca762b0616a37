// Calls
// -----
// How a scenario's callers start their calls and what they hear: through the typed client, with
// nothing but Temporal's own, alone or together, in this process or each in its own.

import { join } from 'node:path';
import type { AdmitAnswer, OperationInput } from '../../client/operation-handle.js';
import { type SpawnedProcess, spawnProcess } from '../../devstack/processes.js';
import { supervisorOf } from '../../domain/identity.js';
import { type CallStep, type JobStep, nameOfAsking, type StepOf } from '../language/steps.js';
import type { FigureText } from '../language/words.js';
import type { CallerOrder, CallerWord } from './caller-main.js';
import { sayAmount, toAmount, toCount } from './numbers.js';
import { accountOf, callOf, check, type Play, type PlayedCall } from './play.js';

const CALLER_LIMIT_MS = 30_000;
/** Steps that are `together` should start within this; more is said, and is no failure. */
const SPREAD_MS_MAX = 25;

export async function playAsking(
  play: Play,
  step: CallStep | JobStep,
  line: number,
): Promise<void> {
  const call = register(play, step);
  if (step.detached === true) {
    ask(play, call).then(
      (verdict) => {
        call.verdict = verdict;
      },
      (error: unknown) => {
        play.notes.push(`line ${line}: "${call.name}" could not ask: ${String(error)}`);
      },
    );
    return;
  }
  const askedAt = performance.now();
  call.verdict = await ask(play, call);
  checkHeard(play, call, { line, tookMs: Math.round(performance.now() - askedAt) });
  if (step.caller_waits !== undefined) {
    const heard = await call.handle.awaitAnswer(step.caller_waits);
    play.tell(
      `the caller of "${call.name}" hears ${heard.status} after ${step.caller_waits} ms at most`,
    );
  }
}

function register(play: Play, step: CallStep | JobStep): PlayedCall {
  const name = nameOfAsking(step);
  const input = inputOf(play, step);
  const { accountId, operationId } = input;
  const { holdfast } = play.stage;
  const call: PlayedCall = {
    ...{ name, step, input, accountId, operationId },
    kind: 'call' in step ? 'call' : 'job',
    handle: 'bound' in input ? holdfast.job(input) : holdfast.call(input),
    verdict: undefined,
  };
  play.calls.set(name, call);
  return call;
}

function inputOf(play: Play, step: CallStep | JobStep): OperationInput {
  const { numbers } = play.scenario;
  return {
    accountId: accountOf(play, step),
    operationId: step.operation ?? nameOfAsking(step),
    route: step.route,
    ...('call' in step
      ? {
          maxTokens: toCount(step.max_tokens, numbers),
          request: {
            messages: [{ role: 'user', content: 'Count.' }],
            ...(step.stream === true && { stream: true }),
          },
        }
      : { bound: { ticks: toCount(step.ticks, numbers) }, request: { count: 'ticks' } }),
    ...(step.tags !== undefined && { tags: step.tags }),
    ...(step.end_user !== undefined && { endUser: step.end_user }),
    ...(step.task !== undefined && { taskId: step.task }),
  };
}

async function ask(play: Play, call: PlayedCall): Promise<AdmitAnswer> {
  if (call.step?.via !== 'temporal') return call.handle.admit({ timeoutMs: CALLER_LIMIT_MS });
  const { temporal, taskQueue } = play.stage;
  const { operationId, ...input } = call.input;
  const workflow = await temporal.workflow.start(supervisorOf(call.kind), {
    taskQueue,
    workflowId: call.handle.workflowId,
    // Its id is said by the workflow's, unless a plain client says another one.
    args: [call.step.operation === undefined ? input : { ...input, operationId }],
    workflowTaskTimeout: '5 seconds',
  });
  return workflow.executeUpdate<AdmitAnswer, [object]>('admit', { args: [{}] });
}

/** Starts the same call again, as a caller would after its workflow was ended. */
export async function restart(play: Play, name: string): Promise<void> {
  const call = callOf(play, name);
  // A new asking: the old one was answered by the run that has ended.
  const askId = globalThis.crypto.randomUUID();
  call.verdict = await call.handle.admit({ askId, timeoutMs: CALLER_LIMIT_MS });
}

function checkHeard(
  play: Play,
  call: PlayedCall,
  { line, tookMs }: { readonly line: number; readonly tookMs?: number },
): void {
  const { step, verdict, name: callName } = call;
  if (step === undefined) return;
  const source = 'what the caller hears';
  const heard = verdict?.status ?? 'unknown';
  const after = tookMs === undefined ? '' : ` after ${tookMs} ms`;
  play.tell(`"${callName}" hears ${heard}${after}`);
  const say = (name: string, expected: string, actual: string): void => {
    check(play, { name: `call ${callName} ${name}`, expected, actual, source, line });
  };
  if (step.hears !== undefined) say('hears', step.hears, heard);
  if (step.reason !== undefined) say('reason', step.reason, reasonOf(verdict) ?? 'none');
  for (const [word, wanted, found] of numbersHeard(play, call, step)) say(word, wanted, found);
  if (step.within !== undefined && tookMs !== undefined) {
    // A stated time fails a run only above three times it: machines are shared.
    check(play, {
      name: `call ${callName} within ms`,
      expected: `<= ${step.within}`,
      actual: String(tookMs),
      ok: tookMs <= step.within * 3,
      source: "the caller's clock",
      line,
    });
  }
}

interface WantedNumbers {
  readonly needed?: FigureText | undefined;
  readonly available?: FigureText | undefined;
  readonly held?: FigureText | undefined;
  readonly unknown?: FigureText | undefined;
}

/** Each number that was asked for, as expected and as heard. */
function numbersHeard(
  play: Play,
  { verdict }: PlayedCall,
  wanted: WantedNumbers,
): (readonly [string, string, string])[] {
  const refusal = verdict?.status === 'refused' ? verdict.refusal : undefined;
  const unit = refusal?.unit ?? 'credit';
  const heldAtAdmission = verdict?.status === 'admitted' ? verdict.heldAmount : undefined;
  const heard = {
    needed: refusal?.neededAmount,
    available: refusal?.availableAmount,
    held: refusal?.heldAmount ?? heldAtAdmission,
    unknown: refusal?.unknownAmount,
  };
  return (['needed', 'available', 'held', 'unknown'] as const).flatMap((word) => {
    const expected = wanted[word];
    if (expected === undefined) return [];
    const digits = heard[word];
    return [
      [
        word,
        sayAmount(toAmount(expected, unit, play.scenario.numbers), unit),
        digits === undefined ? 'not said' : sayAmount(BigInt(digits), unit),
      ] as const,
    ];
  });
}

export function reasonOf(verdict: AdmitAnswer | undefined): string | undefined {
  if (verdict?.status === 'refused') return verdict.refusal.reason;
  return verdict?.status === 'unavailable' ? verdict.reason : undefined;
}

export async function playTogether(
  play: Play,
  step: StepOf<'together'>,
  line: number,
): Promise<void> {
  const calls = step.together.map((each) => register(play, each));
  const started =
    step.processes === true ? await askFromProcesses(play, calls) : await askHere(play, calls);
  const spread = Math.round(Math.max(...started) - Math.min(...started));
  play.tell(`${calls.length} callers asked within ${spread} ms of each other`);
  if (spread > SPREAD_MS_MAX) {
    play.notes.push(`line ${line}: the callers asked within ${spread} ms, not ${SPREAD_MS_MAX}`);
  }
  for (const call of calls) checkHeard(play, call, { line });
  const source = 'what the callers hear';
  if (step.admitted !== undefined) {
    const actual = String(calls.filter(({ verdict }) => verdict?.status === 'admitted').length);
    check(play, {
      name: 'together admitted',
      expected: String(step.admitted),
      actual,
      source,
      line,
    });
  }
  if (step.refusal !== undefined && !calls.some(({ verdict }) => verdict?.status === 'refused')) {
    check(play, { name: 'refused', expected: 'somebody', actual: 'nobody', source, line });
  }
  for (const call of calls) {
    if (step.refusal === undefined || call.verdict?.status !== 'refused') continue;
    for (const [word, expected, actual] of numbersHeard(play, call, step.refusal)) {
      check(play, { name: `refused ${word}`, expected, actual, source, line });
    }
  }
  for (const [reason, expected] of Object.entries(step.refused ?? {})) {
    const actual = String(calls.filter(({ verdict }) => reasonOf(verdict) === reason).length);
    check(play, {
      name: `together refused ${reason}`,
      expected: String(expected),
      actual,
      source,
      line,
    });
  }
  await Promise.all(
    calls.map(async ({ step: each, handle }) => {
      if (each?.caller_waits !== undefined) await handle.awaitAnswer(each.caller_waits);
    }),
  );
}

/** Answers when each asked. */
async function askHere(play: Play, calls: readonly PlayedCall[]): Promise<number[]> {
  const started: number[] = [];
  await Promise.all(
    calls.map(async (call) => {
      started.push(performance.now());
      call.verdict = await ask(play, call);
    }),
  );
  return started;
}

async function askFromProcesses(play: Play, calls: readonly PlayedCall[]): Promise<number[]> {
  const callers = await Promise.all(calls.map(() => spawnCaller(play)));
  try {
    await Promise.all(
      calls.map(async (call, index) => {
        const caller = callers[index] as SpawnedProcess;
        const order: CallerOrder = {
          temporalAddress: play.stage.temporalAddress,
          namespace: play.stage.temporal.options.namespace,
          taskQueue: play.stage.taskQueue,
          input: call.input,
        };
        const prepared = caller.nextReady();
        caller.write(JSON.stringify(order));
        await prepared;
      }),
    );
    const heard = callers.map((caller) => caller.nextReady());
    for (const caller of callers) caller.write('go');
    const words = (await Promise.all(heard)) as unknown as CallerWord[];
    for (const [index, call] of calls.entries()) call.verdict = words[index]?.verdict;
    return words.map((word) => word.askedAtMs);
  } finally {
    await Promise.all(callers.map((caller) => caller.stop('SIGKILL', 5_000)));
  }
}

function spawnCaller(play: Play): Promise<SpawnedProcess> {
  return spawnProcess({
    name: 'a caller',
    cwd: process.cwd(),
    command: process.execPath,
    args: [join(play.distDir, 'scenario-runner', 'play', 'caller-main.js')],
    env: process.env,
  });
}
