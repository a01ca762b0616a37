import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Checkout {
  folder: string;
  write: (file: string, content: string) => void;
  read: (file: string) => string;
  has: (file: string) => boolean;
  remove: (file: string) => void;
  bootstrap: (nodeArgs?: string[]) => Promise<Ended>;
  dispose: () => void;
}

/** npm's stand-in: notes that it was called, and fails when the checkout says so. */
const fakeNpm = `
const fs = require('node:fs');
fs.appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n');
if (fs.existsSync('npm-fails')) { console.error('npm error: no such package'); process.exit(1); }
`;

const compilerOptions = {
  target: 'ES2022',
  module: 'NodeNext',
  types: [],
  lib: ['ES2022'],
  skipLibCheck: true,
  strict: true,
  rootDir: '.',
  outDir: 'dist',
  incremental: true,
  tsBuildInfoFile: 'dist/.tsbuildinfo',
};

/** A small checkout in a folder of its own: the real bootstrap, the real compiler, and an npm that installs nothing. */
export function createCheckout(): Checkout {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-bootstrap-'));
  const at = (file: string): string => path.join(folder, file);
  const write = (file: string, content: string): void => {
    fs.mkdirSync(path.dirname(at(file)), { recursive: true });
    fs.writeFileSync(at(file), content);
  };
  fs.copyFileSync(path.join(root, 'bootstrap.mjs'), at('bootstrap.mjs'));
  write('package.json', JSON.stringify({ name: 'small', type: 'module' }));
  write(
    'tsconfig.build.json',
    JSON.stringify({ compilerOptions, include: ['**/*.ts'], exclude: ['node_modules', 'dist'] }),
  );
  write('npm/npm-cli.js', fakeNpm);
  write('npm/package.json', JSON.stringify({ type: 'commonjs' }));
  fs.mkdirSync(at('node_modules'));
  for (const name of ['typescript', '@temporalio']) {
    fs.symlinkSync(path.join(root, 'node_modules', name), at(`node_modules/${name}`));
  }
  return {
    folder,
    write,
    read: (file) => fs.readFileSync(at(file), 'utf8'),
    has: (file) => fs.existsSync(at(file)),
    remove: (file) => {
      fs.rmSync(at(file), { recursive: true });
    },
    bootstrap: (nodeArgs = []) => runBootstrap(folder, nodeArgs),
    dispose: () => {
      fs.rmSync(folder, { recursive: true });
    },
  };
}

function runBootstrap(folder: string, nodeArgs: string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...nodeArgs, 'bootstrap.mjs'], {
      cwd: folder,
      env: { ...process.env, npm_execpath: path.join(folder, 'npm/npm-cli.js') },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', reject);
    child.once('close', (code) => {
      resolve({ code, stdout, stderr });
    });
  });
}
