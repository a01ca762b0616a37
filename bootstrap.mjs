// Bootstrap
// ---------
// Brings a checkout to the point where `dist/` can run: packages installed, sources compiled, workflows bundled.
//
// B1. Needs Node's built-in modules only, since it runs before anything is installed.
// B2. Does nothing when nothing changed, and judges that by content, not by time.
// B3. Two of it at once do the work once: the second waits for the first. A dead one's lock is taken over.
// B4. Speaks on stderr only: stdout belongs to the command that follows.

import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(fileURLToPath(import.meta.url));
const at = (...parts) => path.join(root, ...parts);

const NODE_OLDEST = [20, 19];
const SILENT_MS_MAX = 2_000;
const STILL_RUNNING_MS = 15_000;
const LOCK_POLL_MS = 100;
const LOCK_BEAT_MS = 1_000;
const LOCK_SILENT_MS_MAX = 30_000;

const INSTALL_STAMP = 'node_modules/.holdfast-lock';
const SOURCES_STAMP = 'dist/.holdfast-sources';
const COMPILER_STATE = 'dist/.tsbuildinfo';
const BUNDLE = 'dist/workflow-bundle.js';

/** Exit codes of every command that starts here. */
const EXIT_OLD_NODE = 2;
const EXIT_NOT_BUILT = 3;

class BootstrapFailure extends Error {}

const say = (sentence) => fs.writeSync(2, `holdfast: ${sentence}\n`);
const sha256 = (content) => createHash('sha256').update(content).digest('hex');
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

const readIfThere = (file) => {
  try {
    return fs.readFileSync(at(file), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
};

/** The sentence that refuses `version` (as in `process.versions.node`), or undefined when it is new enough. */
export function refuseNodeVersion(version) {
  const [major, minor] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = NODE_OLDEST;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return undefined;
  return `Holdfast needs Node ${oldestMajor}.${oldestMinor} or newer, and this is Node ${version}.`;
}

// Children
// --------

const children = new Set();

/** Runs one command from the root and answers its output. `shown` lets the output through to stderr as it comes. */
async function run(step, [command, ...args], { quiet, shown = false, shell = false }) {
  const startedAt = Date.now();
  const elapsed = () => seconds(Date.now() - startedAt);
  if (!quiet) say(`${step} …`);
  const timers = [
    setTimeout(() => quiet && say(`${step} …`), SILENT_MS_MAX),
    setInterval(() => say(`${step} … still at it after ${elapsed()}`), STILL_RUNNING_MS),
  ];
  const child = spawn(command, args, {
    cwd: root,
    shell,
    stdio: shown ? ['ignore', 2, 2] : ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => (output += text));
  }
  try {
    const end = await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve(signal ?? code));
    });
    if (end !== 0) throw new BootstrapFailure(`${step} failed (${end}).\n${output}`.trimEnd());
    if (!quiet) say(`${step} took ${elapsed()}`);
  } catch (error) {
    if (error instanceof BootstrapFailure) throw error;
    throw new BootstrapFailure(`${step} could not start: ${error.message}`);
  } finally {
    timers.forEach(clearInterval);
    children.delete(child);
  }
}

// Packages
// --------

/** npm keeps in node_modules a copy of the lock file it installed: whoever ran it, equal entries mean installed. */
function isInstalledAsLocked(lockText) {
  const installedText = readIfThere('node_modules/.package-lock.json');
  if (installedText === undefined) return false;
  const locked = JSON.parse(lockText).packages ?? {};
  const installed = JSON.parse(installedText).packages ?? {};
  const isSame = (name) =>
    locked[name]?.version === installed[name]?.version &&
    locked[name]?.integrity === installed[name]?.integrity;
  const isLeftOut = (name) => locked[name].optional === true && installed[name] === undefined;
  return (
    Object.keys(locked).every((name) => name === '' || isLeftOut(name) || isSame(name)) &&
    Object.keys(installed).every((name) => name in locked)
  );
}

/** npm's own script, run by this very Node, where it can be found; else whatever the shell calls npm. */
function findNpm() {
  const beside = path.dirname(process.execPath);
  const script = [
    process.env.npm_execpath,
    path.join(beside, 'node_modules/npm/bin/npm-cli.js'),
    path.join(beside, '../lib/node_modules/npm/bin/npm-cli.js'),
  ].find(
    (file) => file !== undefined && path.basename(file) === 'npm-cli.js' && fs.existsSync(file),
  );
  return script === undefined
    ? { command: ['npm'], shell: process.platform === 'win32' }
    : { command: [process.execPath, script], shell: false };
}

async function installPackages({ quiet }) {
  const lockText = readIfThere('package-lock.json');
  if (lockText === undefined || readIfThere(INSTALL_STAMP) === sha256(lockText)) return;
  if (!isInstalledAsLocked(lockText)) {
    const { command, shell } = findNpm();
    // The level is given here because `npm run --silent` hands its own down, and would hide why an install failed.
    const args = ['ci', '--no-audit', '--no-fund', '--include=dev', '--loglevel=warn'];
    await run('installing the locked packages (npm ci)', [...command, ...args], {
      quiet,
      shown: true,
      shell,
    });
  }
  fs.mkdirSync(at('node_modules'), { recursive: true });
  fs.writeFileSync(at(INSTALL_STAMP), sha256(lockText));
}

// Sources
// -------

const NO_SOURCES = new Set(['node_modules', 'dist', 'test', 'coverage']);

/** Every file below the root that ends in one of `endings`, as a sorted path with forward slashes. */
function listFiles(endings, folder = '') {
  return fs
    .readdirSync(at(folder), { withFileTypes: true })
    .flatMap((entry) => {
      const file = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        return entry.name.startsWith('.') || NO_SOURCES.has(file) ? [] : listFiles(endings, file);
      }
      return endings.some((ending) => entry.name.endsWith(ending)) ? [file] : [];
    })
    .sort();
}

const isCompiled = (file) => !file.endsWith('.d.ts') && file !== 'vitest.config.ts';
const compiledName = (file) => `dist/${file.replace(/\.ts$/, '.js')}`;

/** What is built from what: the modules, the files copied as they are, and one hash over all that decides the result. */
function readSources() {
  const modules = listFiles(['.ts']).filter(isCompiled);
  const assets = listFiles(['.sql']);
  const settings = listFiles(['.d.ts', '.json'])
    .filter((file) => file.endsWith('.d.ts') || /^(tsconfig.*|package-lock)\.json$/.test(file))
    .concat('bootstrap.mjs');
  const hash = createHash('sha256').update(process.versions.node);
  for (const file of [...modules, ...assets, ...settings]) {
    hash.update(`\0${file}\0`).update(fs.readFileSync(at(file)));
  }
  const outputs = [...modules.map(compiledName), ...assets.map((file) => `dist/${file}`)];
  if (modules.includes('workflows/index.ts')) outputs.push(BUNDLE);
  return { modules, assets, outputs, hash: hash.digest('hex') };
}

const isMissing = (file) => !fs.existsSync(at(file));

const isFresh = ({ hash, outputs }) =>
  readIfThere(SOURCES_STAMP) === hash && !outputs.some(isMissing);

/** The installed packages are those of the lock file, and `dist/` is that of the sources. */
function isReady() {
  const lockText = readIfThere('package-lock.json');
  const isInstalled = lockText === undefined || readIfThere(INSTALL_STAMP) === sha256(lockText);
  return isInstalled && isFresh(readSources());
}

/** Removes what deleted sources left behind, so that nothing can still import it. */
function removeStale(outputs) {
  const kept = new Set(outputs.flatMap((file) => [file, `${file}.map`]));
  const listBuilt = (folder) =>
    fs.readdirSync(at(folder), { withFileTypes: true }).flatMap((entry) => {
      const file = `${folder}/${entry.name}`;
      return entry.isDirectory() ? listBuilt(file) : [file];
    });
  for (const file of listBuilt('dist')) {
    if (/\.(js|js\.map|sql)$/.test(file) && !kept.has(file)) fs.rmSync(at(file));
  }
}

async function compile({ modules, outputs }, { quiet }) {
  if (modules.length === 0) return;
  const step = `compiling ${modules.length} files`;
  const command = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];
  // The compiler trusts its notes about what it has written; where a file is gone, the notes have to go as well.
  if (outputs.some((file) => file !== BUNDLE && file.endsWith('.js') && isMissing(file))) {
    fs.rmSync(at(COMPILER_STATE), { force: true });
  }
  await run(step, [process.execPath, ...command], { quiet });
}

const BUNDLER = `
import { writeFileSync, renameSync } from 'node:fs';
import path from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
const nothing = () => undefined;
const logger = { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };
const { code } = await bundleWorkflowCode({ workflowsPath: path.resolve('dist/workflows/index.js'), logger });
writeFileSync('${BUNDLE}.part', code);
renameSync('${BUNDLE}.part', '${BUNDLE}');
`;

async function bundleWorkflows({ outputs }, { quiet }) {
  if (!outputs.includes(BUNDLE)) return;
  const command = [process.execPath, '--input-type=module', '-e', BUNDLER];
  await run('bundling the workflows', command, { quiet });
}

async function build(options) {
  const sources = readSources();
  if (isFresh(sources)) return;
  fs.rmSync(at(SOURCES_STAMP), { force: true });
  fs.mkdirSync(at('dist'), { recursive: true });
  await compile(sources, options);
  removeStale(sources.outputs);
  for (const file of sources.assets) {
    fs.mkdirSync(path.dirname(at('dist', file)), { recursive: true });
    fs.copyFileSync(at(file), at('dist', file));
  }
  await bundleWorkflows(sources, options);
  // Written last: a build that was cut short leaves no stamp and is made again.
  fs.writeFileSync(at(SOURCES_STAMP), sources.hash);
}

// The lock
// --------
// A folder with one file in it, named after its owner's process id and a random word. It comes into being whole, by a
// rename; a dead owner's file is renamed to the heir's name, which only one heir can do.

const LOCK = '.holdfast/bootstrap.lock';
const ownerName = `${process.pid}-${randomBytes(6).toString('hex')}`;

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Does `change` and answers true, or answers false when another process was faster. */
function tryTo(change) {
  try {
    change();
    return true;
  } catch (error) {
    if (['ENOENT', 'EEXIST', 'ENOTEMPTY', 'EPERM', 'EACCES'].includes(error.code)) return false;
    throw error;
  }
}

/** Who holds the lock and when it last gave a sign of life; undefined when nobody does. */
function readOwner() {
  try {
    const [name] = fs.readdirSync(at(LOCK));
    if (name === undefined) return undefined;
    return { name, pid: Number.parseInt(name, 10), beat: fs.statSync(at(LOCK, name)).mtimeMs };
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function tryLock() {
  const whole = at(`.holdfast/bootstrap.${ownerName}`);
  fs.mkdirSync(whole, { recursive: true });
  fs.writeFileSync(path.join(whole, ownerName), '');
  if (tryTo(() => fs.renameSync(whole, at(LOCK)))) return true;
  fs.rmSync(whole, { recursive: true });
  // Left empty by a process that died while it unlocked. Where a folder cannot be renamed over, it has to go first.
  tryTo(() => fs.rmdirSync(at(LOCK)));
  return false;
}

const tryInherit = (owner) => tryTo(() => fs.renameSync(at(LOCK, owner.name), at(LOCK, ownerName)));

// A dead owner's process id may have been given to a stranger since, even to this process, so that a silent owner counts
// as dead, too. Silence is counted in polls, not read from the clock: a machine that slept has not been silent.
const isDead = ({ pid }, silentMs) =>
  pid === process.pid || !isRunning(pid) || silentMs > LOCK_SILENT_MS_MAX;

async function lock() {
  const startedAt = Date.now();
  let isWaitingSaid = false;
  let beatSeen = { of: '', sinceMs: 0 };
  while (!tryLock()) {
    const owner = readOwner();
    const beat = `${owner?.name} ${owner?.beat}`;
    beatSeen = { of: beat, sinceMs: beatSeen.of === beat ? beatSeen.sinceMs + LOCK_POLL_MS : 0 };
    if (owner !== undefined && isDead(owner, beatSeen.sinceMs) && tryInherit(owner)) return;
    if (owner !== undefined && !isWaitingSaid && Date.now() - startedAt > SILENT_MS_MAX) {
      say(`waiting for process ${owner.pid}, which is building this checkout`);
      isWaitingSaid = true;
    }
    await sleep(LOCK_POLL_MS);
  }
}

function unlock() {
  tryTo(() => fs.rmSync(at(LOCK, ownerName)));
  tryTo(() => fs.rmdirSync(at(LOCK)));
}

async function withLock(work) {
  await lock();
  const beat = setInterval(() => {
    tryTo(() => fs.utimesSync(at(LOCK, ownerName), new Date(), new Date()));
  }, LOCK_BEAT_MS);
  const stop = (signal, number) => {
    for (const child of children) child.kill(signal);
    unlock();
    process.exit(128 + number);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop).once('SIGHUP', stop);
  try {
    return await work();
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop).off('SIGHUP', stop);
    clearInterval(beat);
    unlock();
  }
}

/**
 * Installs, compiles and bundles what changed since the last time, and returns when `dist/` can be imported. Ends the
 * process with 2 on a Node that is too old and with 3 when a step fails. `quiet` says nothing about what is done in
 * less than 2 s.
 */
export async function ensureBuilt({ quiet = false } = {}) {
  const refusal = refuseNodeVersion(process.versions.node);
  if (refusal !== undefined) {
    say(refusal);
    process.exit(EXIT_OLD_NODE);
  }
  if (isReady()) return;
  try {
    await withLock(async () => {
      await installPackages({ quiet });
      await build({ quiet });
    });
  } catch (error) {
    say(error instanceof BootstrapFailure ? error.message : `the build stopped: ${error.stack}`);
    process.exit(EXIT_NOT_BUILT);
  }
}

const isMain = process.argv[1] !== undefined && fs.existsSync(process.argv[1]);
if (isMain && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await ensureBuilt();
}
