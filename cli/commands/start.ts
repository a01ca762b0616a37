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
import { registerSearchAttributes, scheduleSweeps } from '../../client/set-up-namespace.js';
import { HoldfastError } from '../../domain/failure.js';
import type { Scenario } from '../../scenario-runner/language/scenario.js';
import { setUpDatabase } from '../../scenario-runner/play/ledger-databases.js';
import { configText, routesGiven, simulatorPrices } from '../../scenario-runner/play/settings.js';
import { openStage, type Stage } from '../../scenario-runner/play/stage.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';
import { CHECKOUT_DIR, DIST_DIR, STATE_DIR } from '../context.js';
import { EXIT } from '../output.js';
import { type Figure, readStory, tellStory } from '../story.js';

/** The sweeper's schedule here: who terminates a workflow in the UI sees it come back. */
const SWEEP_EVERY_MS = 30_000;
/** A remote job of the simulator costs a credit each. */
const TICK_MS = 1_000;

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
  const acts = readActs(flags);
  if (typeof acts === 'string') {
    process.stderr.write(`holdfast start: ${acts}\n`);
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
    const { devstack, stage } = await raise(stops, { stateDir, acts });
    const figures: Figure[] = [];
    const onFigure = (figure: Figure): void => {
      figures.push(figure);
      if (isJson) process.stdout.write(`${JSON.stringify(figure)}\n`);
    };
    say(`servers, provider and worker are up after ${seconds(startedAt)} s`);
    await stops.race(tellStory({ stage, acts, distDir: DIST_DIR, suffix, say, onFigure }));
    const reached = figures.filter((figure) => figure.ok).length;
    const isInteractive = flags.exit !== true && process.stdout.isTTY && !isJson;
    const last = `story: ${reached} of ${figures.length} figures reached, ${seconds(startedAt)} s`;
    if (isInteractive) {
      tellWhatToLookAt(say, { devstack, stage, suffix, acts });
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

function readActs(flags: StartFlags): readonly Scenario[] | string {
  for (const [name, text] of [
    ['--price', flags.price],
    ['--limit', flags.limit],
  ] as const) {
    if (!/^[1-9]\d{0,8}$/.test(text))
      return `${name} is "${text}"; give a whole number of credits, 1 or more`;
  }
  const numbers = { price: Number(flags.price), limit: Number(flags.limit) };
  const worstCase = numbers.price * TOKENS;
  if (worstCase * 2 > numbers.limit || worstCase * 3 <= numbers.limit) {
    return `price ${numbers.price} and limit ${numbers.limit} tell no story: two calls of ${TOKENS} tokens, ${worstCase} credits each, must fit and three must not`;
  }
  return readStory(join(CHECKOUT_DIR, 'scenarios', 'story'), numbers);
}

interface Raised {
  readonly devstack: Devstack;
  readonly stage: Stage;
}

async function raise(
  stops: StopList,
  { stateDir, acts }: { readonly stateDir: string; readonly acts: readonly Scenario[] },
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
  stops.add('stopping Temporal and Postgres', () => devstack.stop());
  const workDir = join(stateDir, 'story');
  mkdirSync(workDir, { recursive: true });
  const stage = await openStage({
    distDir: DIST_DIR,
    workDir,
    database: await setUpDatabase({
      adminUrl: devstack.postgres.adminUrl,
      name: `holdfast_story_${process.pid}`,
      isTest: false,
    }),
    temporalAddress: devstack.temporal.address,
    namespace: devstack.temporal.namespace,
    simulatorPrices: simulatorPrices(acts),
    tickMs: TICK_MS,
    configText: (providerUrl) => configText(routesGiven(acts), providerUrl),
    onWorkerEnd: (ended) => {
      replaceWorker(stage, ended, progress);
    },
  });
  stops.add('stopping the worker and the provider', () => stage.close());
  stops.add('taking the addresses back', () => {
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
  // A server that stood here before, or was given, may know less than this version shows.
  await registerSearchAttributes(stage.temporal, SEARCH_ATTRIBUTE_TYPES);
  const worker = await stage.startWorker();
  progress(`worker process ${worker.pid} serves the queues`);
  await scheduleSweeps(stage.temporal, { taskQueue: stage.taskQueue, everyMs: SWEEP_EVERY_MS });
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
  {
    devstack,
    stage,
    suffix,
    acts,
  }: Raised & { readonly suffix: string; readonly acts: readonly Scenario[] },
): void {
  const query = encodeURIComponent(
    `HoldfastBudget IN (${acts
      .flatMap(({ given }) => Object.keys(given.budgets))
      .map((name) => `"${name}-${suffix}"`)
      .join(', ')})`,
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
    `                npx holdfast call --account me --route fake-direct --max-tokens 10 --prompt "Hello"`,
  );
  say('  where it stands: npx holdfast status, npx holdfast ops list');
  say('  stop:         Ctrl-C here, or npx holdfast stop');
  say('');
}

/** Of each call in the story. */
const TOKENS = 40;

const STOPPED = new HoldfastError('NOTHING_RUNNING', 'stopped by a signal');

/** What must be undone, the last first; a signal asks for it, and it is done once. */
class StopList {
  readonly wanted: Promise<void>;
  private readonly steps: { what: string; stop: () => Promise<void> }[] = [];

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

  add(what: string, stop: () => Promise<void>): void {
    this.steps.push({ what, stop });
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
    for (const { what, stop } of this.steps.splice(0).reverse()) {
      process.stderr.write(`${what}\n`);
      try {
        await stop();
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
