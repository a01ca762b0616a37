// scenario: plays files that tell a story and the figures it must end in, or only checks them.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { startDevstack } from '../../devstack/devstack.js';
import { playFiles, readFiles } from '../../scenario-runner/run/run-files.js';
import { type Report, summaryLine, toJson, toLines } from '../../scenario-runner/run/report.js';
import { openTheatre, type Theatre } from '../../scenario-runner/run/theatre.js';
import type { Scenario } from '../../scenario-runner/language/scenario.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';
import { CHECKOUT_DIR, currentRun, DIST_DIR } from '../context.js';
import { CommandEnd, EXIT, print, printJson } from '../output.js';
import { misuse } from '../read-flags.js';

interface RunFlags {
  readonly json?: true;
  readonly jobs: string;
  readonly keep?: true;
  readonly verbose?: true;
  readonly policy: 'holdfast' | 'naive';
  readonly set: readonly string[];
}

export function registerScenario(program: Command): void {
  const scenario = program
    .command('scenario')
    .description('play stories with their figures against the real parts');
  scenario
    .command('run')
    .argument('<files...>', 'scenario files')
    .description('play them; the last line counts what passed, failed and is pending')
    .option('--json', 'print one JSON object a file, and nothing else, on stdout')
    .option('--jobs <n>', 'how many at a time', '2')
    .option('--keep', 'keep the databases, and print the UI link and the psql line of each')
    .option('--verbose', 'tell every step on stderr')
    .addOption(
      new Option('--policy <policy>', 'who is played: the product, or the control arm')
        .choices(['holdfast', 'naive'])
        .default('holdfast'),
    )
    .option('--set <name=n>', "change one of a file's numbers; may be repeated", collect, [])
    .addHelpText('after', '\nExample:\n  npx holdfast scenario run scenarios/hb/*.yaml --json')
    .action(run);
  scenario
    .command('check')
    .argument('<files...>', 'scenario files')
    .description('read them without playing them')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  npx holdfast scenario check my-story.yaml')
    .action(checkFiles);
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

function checkFiles(files: readonly string[], flags: { readonly json?: true }): void {
  const { scenarios, unusable } = readFiles(files);
  if (flags.json === true) {
    printJson([
      ...scenarios.map(({ file, name, about }) => ({ file, scenario: name, about, ok: true })),
      ...unusable.map(({ file, problems }) => ({ file, ok: false, problems })),
    ]);
  } else {
    for (const { name, about } of scenarios) print(`${name}: ${about}`);
  }
  refuseUnusable(unusable);
}

function refuseUnusable(unusable: readonly Error[]): void {
  if (unusable.length === 0) return;
  throw new CommandEnd(
    EXIT.misuse,
    `${unusable.length} unusable\n${unusable.map(({ message }) => message).join('\n')}`,
  );
}

async function run(files: readonly string[], flags: RunFlags): Promise<void> {
  if (!/^[1-8]$/.test(flags.jobs)) throw misuse('--jobs', `is "${flags.jobs}"; give 1 to 8`);
  const set = readNumbers(flags.set);
  const { scenarios, unusable } = readFiles(files, set);
  refuseUnusable(unusable);
  refuseUnknownNumbers(scenarios, set);
  const { theatre, close } = await openOnServers(scenarios, flags);
  let reports: Report[];
  try {
    reports = await playFiles(theatre, scenarios, {
      policy: flags.policy,
      ...(flags.keep === true && { keep: true }),
      jobs: Number(flags.jobs),
      onSlow: (name) => {
        say(`playing ${name} …`);
      },
      onReport: (report) => {
        if (flags.json === true) print(toJson(report));
        else for (const line of toLines(report)) print(line);
      },
    });
  } finally {
    await theatre.close();
    await close();
  }
  (flags.json === true ? say : print)(summaryLine(reports));
  const has = (verdict: Report['verdict']): boolean =>
    reports.some((report) => report.verdict === verdict);
  process.exitCode = has('fail') ? EXIT.refused : has('error') ? EXIT.failed : EXIT.done;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function readNumbers(set: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    set.map((text) => {
      const [, name, value] = /^([a-z][a-z0-9_]*)=(-?\d{1,15})$/.exec(text) ?? [];
      if (name === undefined) throw misuse('--set', `is "${text}"; give name=number`);
      return [name, Number(value)];
    }),
  );
}

/** A number that no file has would change nothing, and the run would look as if it had. */
function refuseUnknownNumbers(
  scenarios: readonly Scenario[],
  set: Readonly<Record<string, number>>,
): void {
  const known = [...new Set(scenarios.flatMap(({ numbers }) => Object.keys(numbers)))];
  for (const name of Object.keys(set)) {
    if (known.includes(name)) continue;
    throw misuse(
      '--set',
      `names "${name}", which no file has; known are ${known.join(', ') || 'none'}`,
    );
  }
}

/** The servers of a stack that runs here or was given, else servers of this run alone. */
async function openOnServers(
  scenarios: readonly Scenario[],
  flags: RunFlags,
): Promise<{ readonly theatre: Theatre; readonly close: () => Promise<void> }> {
  const tell = flags.verbose === true ? say : (): void => undefined;
  const isPlayed = scenarios.some(({ pending }) => pending === undefined);
  const running = currentRun();
  const stateDir = mkdtempSync(join(tmpdir(), 'holdfast-scenario-'));
  chmodSync(stateDir, 0o755);
  const devstack = await startDevstack({
    checkoutDir: CHECKOUT_DIR,
    stateDir,
    databaseAdminUrl: process.env['DATABASE_ADMIN_URL'] ?? serverOf(running?.databaseAdminUrl),
    temporalAddress: process.env['TEMPORAL_ADDRESS'] ?? running?.temporalAddress,
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    fastTimers: true,
    inMemoryTemporal: true,
    onProgress: say,
  });
  const theatre = await openTheatre({
    distDir: DIST_DIR,
    adminUrl: devstack.postgres.adminUrl,
    temporalAddress: devstack.temporal.address,
    namespace: devstack.temporal.namespace,
    uiUrl: devstack.temporal.uiUrl ?? running?.uiUrl ?? null,
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    spareCount: flags.policy === 'naive' || !isPlayed ? 0 : 3,
    tell,
    announce: say,
  });
  return {
    theatre,
    async close() {
      if (flags.keep === true && !devstack.postgres.given) await waitForEnter();
      await devstack.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

/** Servers of the run's own end with it, so whoever wants to look is waited for. */
async function waitForEnter(): Promise<void> {
  if (!process.stdin.isTTY) {
    say('the servers were of this run alone and end now; to look at leisure: npm start first');
    return;
  }
  say('kept until you press Enter');
  await new Promise<void>((resolve) => {
    process.stdin.resume().once('data', () => {
      process.stdin.pause();
      resolve();
    });
  });
}

function serverOf(databaseAdminUrl: string | undefined): string | undefined {
  if (databaseAdminUrl === undefined) return undefined;
  const url = new URL(databaseAdminUrl);
  url.pathname = '/postgres';
  return url.toString();
}
