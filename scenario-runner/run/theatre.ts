// Theatre
// -------
// Where scenarios are played: servers that stand, one migrated template, spare workers. Each play
// gets a stage of its own with its own database and queue, so that files can run side by side.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SearchAttributeType } from '../../devstack/temporal.js';
import { tellTimeline } from '../judge/timeline.js';
import type { Scenario } from '../language/scenario.js';
import { playNaive } from '../naive/play-naive.js';
import type { Check } from '../play/check.js';
import { createTemplate, type LedgerTemplate } from '../play/ledger-databases.js';
import { playScenario } from '../play/play-scenario.js';
import type { Play } from '../play/play.js';
import { readBalances, type Balances } from '../figures/compare.js';
import { configText, routesGiven, simulatorPrices } from '../play/settings.js';
import { openStage, type Stage } from '../play/stage.js';
import { withLimit } from '../play/with-limit.js';
import { createWorkerPool, type WorkerPool } from '../play/worker-pool.js';
import { needsOwnServers, openOwnServers } from './own-servers.js';
import type { Report, Verdict } from './report.js';

export interface TheatreOptions {
  readonly distDir: string;
  readonly adminUrl: string;
  readonly temporalAddress: string;
  readonly namespace: string;
  readonly uiUrl: string | null;
  /** For servers of a play's own: name to Temporal's type. */
  readonly searchAttributes: Readonly<Record<string, SearchAttributeType>>;
  /** Loaded workers that wait. */
  readonly spareCount: number;
  /** Every step and figure. */
  readonly tell: (line: string) => void;
  /** What people asked for: where a kept database is. */
  readonly announce: (line: string) => void;
}

export interface PlayFileOptions {
  readonly policy: 'holdfast' | 'naive';
  readonly keep?: boolean;
  /** What one file has, in milliseconds. */
  readonly limitMs?: number;
  readonly onStage?: (stage: Stage) => void;
}

export interface Theatre {
  play(scenario: Scenario, options: PlayFileOptions): Promise<Report>;
  close(): Promise<void>;
}

const FILE_LIMIT_MS = 60_000;

export async function openTheatre(options: TheatreOptions): Promise<Theatre> {
  const workDir = mkdtempSync(join(tmpdir(), 'holdfast-play-'));
  const runId = `${process.pid.toString(36)}${Date.now().toString(36)}`;
  const template = await createTemplate(options.adminUrl, `play_template_${runId}`);
  const workerPool = createWorkerPool({
    distDir: options.distDir,
    workDir,
    spareCount: options.spareCount,
  });
  let playCount = 0;
  let keptCount = 0;
  return {
    async play(scenario, playOptions) {
      if (scenario.pending !== undefined)
        return pendingReport(scenario, scenario.pending, playOptions);
      if (playOptions.policy === 'naive' && scenario.naive === undefined) {
        return pendingReport(scenario, 'states no figure for the control arm', playOptions);
      }
      playCount += 1;
      if (playOptions.keep === true) keptCount += 1;
      const id = `${runId}_${playCount}`;
      return playFile({
        ...{ scenario, playOptions, id, template, workerPool, theatre: options },
        workDir: join(workDir, id),
        progress: {},
      });
    },
    async close() {
      await workerPool.close();
      // Copies outlive their template; the role is theirs too.
      if (keptCount === 0) await template.drop();
      rmSync(workDir, { recursive: true, force: true });
    },
  };
}

interface Playing {
  readonly scenario: Scenario;
  readonly playOptions: PlayFileOptions;
  readonly id: string;
  readonly template: LedgerTemplate;
  readonly workerPool: WorkerPool;
  readonly theatre: TheatreOptions;
  readonly workDir: string;
  /** How far it came: a play that ends by an error has a timeline too. */
  readonly progress: { play?: Play; line?: number };
}

interface Outcome {
  readonly checks: readonly Check[];
  readonly notes: readonly string[];
  readonly reason?: string;
  readonly play?: Play;
}

async function playFile(playing: Playing): Promise<Report> {
  const { scenario, playOptions } = playing;
  const startedAt = performance.now();
  const { limitMs = FILE_LIMIT_MS } = playOptions;
  const isOver = (): Error => new Error(`a file has ${limitMs / 1000} s, and they are over`);
  const ended = async (outcome: Outcome, stage?: Stage): Promise<Report> => {
    const { checks, notes, reason, play } = outcome;
    const firstOff = checks.find(({ ok }) => !ok);
    const verdict: Verdict =
      // A figure that is off outranks whatever ended the play afterwards.
      firstOff !== undefined ? 'fail' : reason === undefined ? 'pass' : 'error';
    return {
      ...{ scenario: scenario.name, file: scenario.file, policy: playOptions.policy, verdict },
      ...(reason !== undefined && { reason }),
      ...(firstOff !== undefined && { firstOff }),
      checks,
      ...(await totalsOf(playing, stage, play)),
      notes,
      seconds: Math.round((performance.now() - startedAt) / 100) / 10,
      timeline: verdict === 'pass' || play === undefined ? [] : await tellTimeline(play),
    };
  };
  let stage: Stage | undefined;
  let close = (): Promise<void> => Promise.resolve();
  try {
    const opened = await open(playing);
    ({ stage, close } = opened);
    playOptions.onStage?.(stage);
    return await ended(await withLimit(playOn(playing, opened), limitMs, isOver), stage);
  } catch (error) {
    const said =
      (await providerEnd(stage)) ?? (error instanceof Error ? error.message : String(error));
    const { play, line } = playing.progress;
    const reason = line === undefined ? said : `line ${line}: ${said}`;
    const checks = play?.checks ?? [];
    return await ended({ checks, notes: [], reason, ...(play !== undefined && { play }) }, stage);
  } finally {
    await close();
  }
}

/** A provider that has died explains whatever else went wrong; its exit may be heard a little later. */
async function providerEnd(stage: Stage | undefined): Promise<string | undefined> {
  if (stage === undefined) return undefined;
  const later = new Promise<undefined>((resolve) => {
    setTimeout(() => {
      resolve(undefined);
    }, 250);
  });
  return Promise.race([stage.providerEnded, later]);
}

interface Opened {
  readonly stage: Stage;
  readonly ownServers?: Awaited<ReturnType<typeof openOwnServers>>;
  readonly close: () => Promise<void>;
}

async function open(playing: Playing): Promise<Opened> {
  const { scenario, theatre, id, playOptions } = playing;
  const isOwn = playOptions.policy === 'holdfast' && needsOwnServers(scenario);
  const ownServers = isOwn ? await openOwnServers({ ...theatre, id }) : undefined;
  const database = ownServers?.database ?? (await playing.template.copy(`play_${id}`));
  const stage = await openStage({
    ...{ distDir: theatre.distDir, workDir: playing.workDir, database },
    workerPool: playing.workerPool,
    temporalAddress: ownServers?.temporalAddress ?? theatre.temporalAddress,
    namespace: theatre.namespace,
    taskQueue: `holdfast-${id}`,
    simulatorPrices: simulatorPrices([scenario]),
    configText: (providerUrl) => configText(routesGiven([scenario]), providerUrl),
    onWorkerEnd: (worker) => {
      theatre.tell(`worker ${worker.pid} has ended by itself\n${worker.tail()}`);
    },
  });
  const keepDatabase = playOptions.keep === true && ownServers === undefined;
  return {
    stage,
    ...(ownServers !== undefined && { ownServers }),
    async close() {
      if (keepDatabase) tellWhereItIs(playing, stage);
      await stage.close({ isHasty: true, keepDatabase: keepDatabase || ownServers !== undefined });
      await ownServers?.close();
    },
  };
}

async function playOn(playing: Playing, { stage, ownServers }: Opened): Promise<Outcome> {
  const { scenario, playOptions, theatre, id } = playing;
  const tell = (line: string): void => {
    theatre.tell(`  ${scenario.name}: ${line}`);
  };
  if (playOptions.policy === 'naive') {
    const { checks } = await playNaive({ scenario, provider: stage.provider, tell });
    return { checks, notes: [] };
  }
  return playScenario({
    ...{ scenario, stage, distDir: theatre.distDir, tell },
    onProgress: (play, line) => {
      playing.progress.play = play;
      playing.progress.line = line;
    },
    suffix: id.replaceAll('_', '-'),
    ...(ownServers !== undefined && { ownServers }),
  });
}

function tellWhereItIs({ theatre, id }: Playing, stage: Stage): void {
  const query = encodeURIComponent(`TaskQueue = "holdfast-${id}"`);
  if (theatre.uiUrl !== null) {
    theatre.announce(
      `Temporal UI: ${theatre.uiUrl}/namespaces/${theatre.namespace}/workflows?query=${query}`,
    );
  }
  theatre.announce(`psql '${stage.databaseAdminUrl}'`);
}

async function totalsOf(
  { scenario }: Playing,
  stage: Stage | undefined,
  play: Play | undefined,
): Promise<{ provider: Report['provider']; budgets: Balances }> {
  if (stage === undefined) return { provider: null, budgets: {} };
  try {
    const { totals } = await stage.provider.truth();
    const { received, charged } = totals;
    const budgets = play === undefined ? {} : await readBalances(play, scenario);
    return { provider: { received, charged }, budgets };
  } catch {
    // The provider, or the ledger, is away: that is the reason already.
    return { provider: null, budgets: {} };
  }
}

function pendingReport(scenario: Scenario, reason: string, { policy }: PlayFileOptions): Report {
  return {
    ...{ scenario: scenario.name, file: scenario.file, policy, verdict: 'pending', reason },
    ...{ checks: [], provider: null, budgets: {}, notes: [], seconds: 0, timeline: [] },
  };
}
