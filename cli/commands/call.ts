import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { createHoldfastClient } from '../../client/holdfast-client.js';
import type { AwaitedAnswer, OperationHandle } from '../../client/operation-handle.js';
import type { CallRequest } from '../../domain/call-input.js';
import { describeRefusal } from '../../domain/refusal.js';
import type { OperationSnapshot } from '../../domain/snapshot.js';
import { createBodyStore } from '../../ledger/bodies.js';
import { readOperation } from '../../ledger/read.js';
import type { Ledger } from '../../ledger/connection.js';
import { currentConfig, withLedger, withTemporal } from '../context.js';
import { CommandEnd, EXIT, print, printJson, say, withProgress } from '../output.js';
import { misuse, readCount } from '../read-flags.js';

interface CallFlags {
  readonly account: string;
  readonly route: string;
  readonly maxTokens: string;
  readonly prompt?: string;
  readonly requestJson?: string;
  readonly operation?: string;
  readonly timeout: string;
  readonly json?: true;
}

export function registerCall(program: Command): void {
  program
    .command('call')
    .description('one supervised call: its answer, its charge, its operation id')
    .requiredOption('--account <id>', 'who pays')
    .requiredOption('--route <route>', 'a configured route')
    .requiredOption('--max-tokens <n>', 'the most completion tokens that may be bought')
    .option('--prompt <text>', 'what to say')
    .option('--request-json <json>', 'a whole request, such as {"messages": […]}')
    .option('--operation <id>', 'your own id; repeating it joins the same call')
    .option(
      '--timeout <seconds>',
      'how long to wait for the answer; the call goes on after it',
      '60',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExample:\n  npx holdfast call --account acme --route fake-direct --max-tokens 10 --prompt "Hello"',
    )
    .action(async (flags: CallFlags) => {
      // What can be told without a server is told first.
      const asked = {
        request: readRequest(flags),
        maxTokens: readCount('--max-tokens', flags.maxTokens),
      };
      await withLedger((ledger) =>
        withTemporal((client) => call(flags, { ledger, client, ...asked })),
      );
    });
}

async function call(
  flags: CallFlags,
  {
    ledger,
    client,
    request,
    maxTokens,
  }: {
    readonly ledger: Ledger;
    readonly client: Parameters<typeof createHoldfastClient>[0]['client'];
    readonly request: CallRequest;
    readonly maxTokens: number;
  },
): Promise<void> {
  const operationId = flags.operation ?? randomUUID();
  const accountId = flags.account;
  const holdfast = createHoldfastClient({
    client,
    bodyStore: createBodyStore(ledger),
    taskQueue: currentConfig().temporal.taskQueue,
  });
  const handle = holdfast.call({
    accountId,
    operationId,
    route: flags.route,
    maxTokens,
    request,
  });
  // An id of our own making is new; one that was given may stand already.
  const joined =
    flags.operation !== undefined &&
    (await readOperation(ledger, { accountId, operationId })) !== undefined;
  await admit(handle, operationId);
  const timeoutMs = readCount('--timeout', flags.timeout) * 1_000;
  const answer = await withProgress('waiting for the answer', handle.awaitAnswer(timeoutMs));
  const snapshot = await readOperation(ledger, { accountId, operationId });
  tell(flags, { operationId, answer, snapshot, joined });
  if (answer.status === 'unknown') {
    throw new CommandEnd(
      EXIT.failed,
      `no answer in time; the call goes on. See: npx holdfast ops show ${operationId}`,
    );
  }
  if (answer.status !== 'answered' && answer.status !== 'settled_without_answer') {
    throw new CommandEnd(EXIT.refused, describeEnd(operationId, answer, snapshot));
  }
}

/** In the word of `ops list`, with what the provider said last. */
function describeEnd(
  operationId: string,
  answer: AwaitedAnswer,
  snapshot: OperationSnapshot | undefined,
): string {
  const last = snapshot?.attempts.at(-1);
  const said = answer.result?.lastAnswer ?? last?.lastAnswer;
  const proof = answer.result?.proof ?? last?.proof;
  return [
    `the call ended as ${snapshot?.state ?? answer.status}`,
    ...(said == null ? [] : [`the provider's last answer: ${said}`]),
    ...(proof == null ? [] : [`proof that nothing was charged: ${proof}`]),
    ...(snapshot === undefined ? [] : [`see: npx holdfast ops show ${operationId}`]),
  ].join('; ');
}

interface Heard {
  readonly operationId: string;
  readonly answer: AwaitedAnswer;
  readonly snapshot: OperationSnapshot | undefined;
  /** The operation stood before this command asked: its own request counts, not this one. */
  readonly joined: boolean;
}

function tell(flags: CallFlags, { operationId, answer, snapshot, joined }: Heard): void {
  const attempt = snapshot?.attempts.at(-1);
  const charged = attempt?.chargedAmount == null ? null : BigInt(attempt.chargedAmount);
  const state = snapshot?.state ?? null;
  if (flags.json === true) {
    printJson({
      ...{ operationId, status: answer.status, state, joined },
      text: answer.text ?? null,
      chargedAmount: charged,
      unit: attempt?.unit ?? null,
    });
    return;
  }
  const missing = state === 'released' ? '-' : 'unknown';
  print(answer.text === undefined ? `no answer: ${state ?? answer.status}` : textOf(answer.text));
  print(`charged: ${attempt === undefined ? 'unknown' : say(charged, attempt.unit, missing)}`);
  print(`operation: ${operationId}${joined ? JOINED : ''}`);
}

const JOINED = ' (joined: it was asked for before, and its first request counts)';

async function admit(handle: OperationHandle, operationId: string): Promise<void> {
  const verdict = await withProgress('asking for admission', handle.admit());
  switch (verdict.status) {
    case 'admitted':
    case 'closed':
      return;
    case 'invalid':
      throw new CommandEnd(EXIT.misuse, verdict.message);
    case 'refused':
      throw new CommandEnd(
        EXIT.refused,
        `refused (${verdict.refusal.reason}): ${describeRefusal(verdict.refusal)}`,
      );
    case 'unavailable':
      throw new CommandEnd(
        EXIT.failed,
        `${verdict.reason}: nothing was sent, and nothing of this ask will be`,
      );
    case 'unknown':
      throw new CommandEnd(
        EXIT.failed,
        `no worker answered in time; see: npx holdfast doctor. Operation ${operationId} may still be admitted: ask again with --operation ${operationId}`,
      );
  }
}

function readRequest(flags: CallFlags): CallRequest {
  if ((flags.prompt === undefined) === (flags.requestJson === undefined)) {
    throw misuse('--prompt', 'or --request-json must be given, one of them');
  }
  if (flags.requestJson === undefined) {
    return { messages: [{ role: 'user', content: flags.prompt }] };
  }
  try {
    return JSON.parse(flags.requestJson) as CallRequest;
  } catch {
    throw misuse(
      '--request-json',
      `is not JSON: ${flags.requestJson.slice(0, 60)}; give {"messages": [{"role": "user", "content": "Hello"}]}`,
    );
  }
}

/** The text of a chat completion; the raw answer where it has another form. */
function textOf(answer: string): string {
  try {
    const parsed = JSON.parse(answer) as { choices?: { message?: { content?: unknown } }[] };
    const content = parsed.choices?.[0]?.message?.content;
    return typeof content === 'string' ? content : answer;
  } catch {
    // A stream, or a form of its own: it is shown as it came.
    return answer;
  }
}
