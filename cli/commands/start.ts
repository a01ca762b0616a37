// start
// -----
// Does the main job with nothing configured: finds or starts the servers, tells the story on them,
// and, in a terminal, stays up for whoever wants to try. Ctrl-C stops everything in order.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { type Devstack, startDevstack } from '../../devstack/devstack.js';
import type { SpawnedProcess } from '../../devstack/processes.js';
import { readRunFile, removeRunFile, writeRunFile } from '../../devstack/run-file.js';
import { HoldfastError } from '../../domain/failure.js';
import { openStage, type Stage } from '../../scenario-runner/stage.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';
import { CHECKOUT_DIR, DIST_DIR, STATE_DIR } from '../context.js';
import { EXIT } from '../output.js';
import { createFigureSheet } from '../story/figures.js';
import { PATIENT_ROUTE, STORY_ACCOUNTS, STORY_ROUTE } from '../story/props.js';
import { tellStory, worstCaseFor } from '../story/story.js';
import { storyConfig } from '../story/story-config.js';

interface StartFlags {
  readonly exit?: true;
  readonly json?: true;
  readonly price: string;
  readonly limit: string;
}

export function registerStart(program: Command): void {
  program
    .command('start')
    .description('start everything that is needed and tell the story on it')
    .option('--exit', 'clean up and end by itself, as any run without a terminal does')
    .option('--json', 'print one JSON object a figure')
    .option('--price <credits>', 'credits a completion token', '1')
    .option('--limit <credits>', 'the limit of the budget', '100')
    .addHelpText('after', '\nExample:\n  npm start -- --exit --json')
    .action(async (flags: StartFlags) => {
      process.exitCode = await start(flags);
    });
}

async function start(flags: StartFlags): Promise<number> {
  const startedAt = performance.now();
  const numbers = readNumbers(flags);
  if (typeof numbers === 'string') {
    process.stderr.write(`holdfast start: ${numbers}\n`);
    return EXIT.misuse;
  }
  const stateDir = STATE_DIR;
  const runFile = readRunFile(stateDir);
  if (runFile.kind === 'running') {
    process.stderr.write(
      `holdfast start: it already runs here, as process ${runFile.run.main.pid} since ${runFile.run.startedAt}; ` +
        `see it with: npx holdfast status, stop it with: npx holdfast stop\n`,
    );
    return EXIT.refused;
  }
  const isJson = flags.json === true;
  const say = (line: string): void => {
    (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  };
  const stops = new StopList();
  try {
    const suffix = Date.now().toString(36);
    const { devstack, stage } = await raise(stops, { stateDir, numbers });
    const sheet = createFigureSheet((figure) => {
      if (isJson) process.stdout.write(`${JSON.stringify(figure)}\n`);
      else
        say(
          `    ${figure.ok ? 'ok ' : 'OFF'} ${figure.figure}: ${figure.actual}${figure.ok ? '' : `, expected ${figure.expected}`}  (${figure.source})`,
        );
    });
    say(`first call after ${seconds(startedAt)} s`);
    const figures = await stops.race(tellStory({ stage, ...numbers, sheet, say, suffix }));
    const reached = figures.filter((figure) => figure.ok).length;
    const isInteractive = flags.exit !== true && process.stdout.isTTY && !isJson;
    const last = `story: ${reached} of ${figures.length} figures reached, ${seconds(startedAt)} s`;
    if (isInteractive) {
      tellWhatToLookAt(say, { devstack, stage, suffix });
      say(last);
      await stops.wanted;
      await stops.all();
    } else {
      await stops.all();
      say(last);
    }
    return reached === figures.length ? EXIT.done : EXIT.refused;
  } catch (error) {
    await stops.all();
    if (error === STOPPED) return EXIT.refused;
    process.stderr.write(
      `holdfast start: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    return EXIT.failed;
  }
}

interface Numbers {
  readonly price: number;
  readonly limit: bigint;
}

function readNumbers(flags: StartFlags): Numbers | string {
  for (const [name, text] of [
    ['--price', flags.price],
    ['--limit', flags.limit],
  ] as const) {
    if (!/^[1-9]\d{0,8}$/.test(text))
      return `${name} is "${text}"; give a whole number of credits, 1 or more`;
  }
  const numbers = { price: Number(flags.price), limit: BigInt(flags.limit) };
  try {
    worstCaseFor(numbers.price, numbers.limit);
    return numbers;
  } catch (error) {
    if (error instanceof RangeError) return error.message;
    throw error;
  }
}

interface Raised {
  readonly devstack: Devstack;
  readonly stage: Stage;
}

async function raise(
  stops: StopList,
  { stateDir, numbers }: { readonly stateDir: string; readonly numbers: Numbers },
): Promise<Raised> {
  const progress = (line: string): void => {
    process.stderr.write(`${line}\n`);
  };
  const devstack = await startDevstack({
    checkoutDir: CHECKOUT_DIR,
    stateDir,
    databaseAdminUrl: process.env['DATABASE_ADMIN_URL'],
    temporalAddress: process.env['TEMPORAL_ADDRESS'],
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    onProgress: progress,
  });
  stops.add(() => devstack.stop());
  const workDir = join(stateDir, 'story');
  mkdirSync(workDir, { recursive: true });
  const stage = await openStage({
    distDir: DIST_DIR,
    workDir,
    adminUrl: devstack.postgres.adminUrl,
    databaseName: `holdfast_story_${process.pid}`,
    temporalAddress: devstack.temporal.address,
    namespace: devstack.temporal.namespace,
    isTest: false,
    simulatorPrices: [STORY_ROUTE, PATIENT_ROUTE].map((route) => `${route}=${numbers.price}`),
    configText: storyConfig,
    onWorkerEnd: (ended) => {
      replaceWorker(stage, ended, progress);
    },
  });
  stops.add(() => stage.close());
  stops.add(() => {
    removeRunFile(stateDir);
    return Promise.resolve();
  });
  writeRunFile(stateDir, {
    databaseUrl: stage.databaseUrl,
    databaseAdminUrl: stage.databaseAdminUrl,
    temporalAddress: devstack.temporal.address,
    temporalNamespace: devstack.temporal.namespace,
    uiUrl: devstack.temporal.uiUrl,
    simulatorUrl: stage.provider.url,
    temporalBinary: devstack.temporal.binaryPath,
    configFile: stage.configFile,
  });
  const worker = await stage.startWorker();
  progress(`worker process ${worker.pid} serves the queues`);
  return { devstack, stage };
}

function replaceWorker(
  stage: Stage,
  ended: SpawnedProcess,
  progress: (line: string) => void,
): void {
  progress(`worker process ${ended.pid} has ended by itself; starting another\n${ended.tail()}`);
  stage.startWorker().then(
    (next) => {
      progress(`worker process ${next.pid} serves the queues`);
    },
    (error: unknown) => {
      progress(`no worker serves the queues: ${String(error)}`);
    },
  );
}

function tellWhatToLookAt(
  say: (line: string) => void,
  { devstack, stage, suffix }: Raised & { readonly suffix: string },
): void {
  const query = encodeURIComponent(
    `HoldfastBudget IN (${STORY_ACCOUNTS.map((name) => `"${name}-${suffix}"`).join(', ')})`,
  );
  say('');
  if (devstack.temporal.uiUrl !== null) {
    say(
      `  Temporal UI:  ${devstack.temporal.uiUrl}/namespaces/${devstack.temporal.namespace}/workflows?query=${query}`,
    );
  }
  say(`  provider:     ${stage.provider.url}/truth`);
  say('  a call of your own, in a second terminal:');
  say(
    '                npx holdfast account create me && npx holdfast budget create mine --unit credit --limit 100 --account me',
  );
  say(
    `                npx holdfast call --account me --route ${STORY_ROUTE} --max-tokens 10 --prompt "Hello"`,
  );
  say('  where it stands: npx holdfast status, npx holdfast ops list');
  say('  stop:         Ctrl-C here, or npx holdfast stop');
  say('');
}

const STOPPED = new HoldfastError('NOTHING_RUNNING', 'stopped by a signal');

/** What must be undone, the last first; a signal asks for it, and it is done once. */
class StopList {
  readonly wanted: Promise<void>;
  private readonly steps: (() => Promise<void>)[] = [];

  constructor() {
    this.wanted = new Promise((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) {
        process.on(signal, () => {
          process.stderr.write('stopping …\n');
          resolve();
        });
      }
    });
  }

  add(step: () => Promise<void>): void {
    this.steps.push(step);
  }

  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([
      work,
      this.wanted.then(() => {
        throw STOPPED;
      }),
    ]);
  }

  async all(): Promise<void> {
    for (const step of this.steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        process.stderr.write(
          `while stopping: ${error instanceof Error ? error.message : String(error)}\n`,
        );
      }
    }
  }
}

function seconds(since: number): string {
  return (Math.round((performance.now() - since) / 100) / 10).toString();
}
