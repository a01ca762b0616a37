// What README.md says about servers that were given, and its samples, done on real ones.

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createHoldfastClient } from '../../client/holdfast-client.js';
import type { RouteSettings } from '../../domain/route.js';
import { amount } from '../../domain/money.js';
import { createAccount, createBudget, setPrice } from '../../ledger/administer.js';
import { runCli } from '../support/run-cli.js';
import { superviseFor, type Supervised } from '../support/supervised.js';

const root = resolve(import.meta.dirname, '../..');
const SAMPLES = [
  ...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```js\n(.*?)^```/gms),
].map(([, code = '']) => code);

describe('calls', () => {
  let stage: Supervised;
  let environment: Record<string, string>;
  /** Below the project, so that a sample finds its packages. */
  let home: string;

  beforeAll(async () => {
    stage = await superviseFor({ label: 'readme', limit: 1_000n });
    const { ledger } = stage.books;
    const route = stage.routes.get('fake-priced') as RouteSettings;
    stage.routes.set('fake-direct', { ...route, route: 'fake-direct', fallbacks: [] });
    await setPrice(ledger, {
      route: 'fake-direct',
      unit: 'credit',
      rates: ['request', 'input_tokens', 'output_tokens'].map((dimension) => ({
        dimension,
        rateAmount: amount(dimension === 'output_tokens' ? 1n : 0n),
        perCount: 1n,
      })),
    });
    await createAccount(ledger, { accountId: 'me' });
    await createBudget(ledger, {
      budgetId: 'mine',
      unit: 'credit',
      limitAmount: amount(100n),
      scopes: [{ kind: 'account', value: 'me' }],
    });
    environment = {
      DATABASE_URL: stage.books.databaseUrl,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
    };
    mkdirSync(join(root, '.holdfast'), { recursive: true });
    home = mkdtempSync(join(root, '.holdfast', 'readme-test-'));
  });
  afterAll(async () => {
    rmSync(home, { recursive: true, force: true });
    await stage.close();
  });

  test('both samples of the README compile under our strict rules', () => {
    const files = SAMPLES.map((_, no) => join(home, `sample-${no}.ts`));
    files.forEach((file, no) => {
      writeFileSync(file, (SAMPLES[no] ?? '').replaceAll("'./dist/", "'../../"));
    });
    const config = join(home, 'tsconfig.json');
    const compilerOptions = { noEmit: true, rootDir: root };
    const extended = { extends: join(root, 'tsconfig.json'), compilerOptions };
    writeFileSync(config, JSON.stringify({ ...extended, files, include: [], exclude: [] }));
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    expect(SAMPLES.length).toBe(2);
    expect(spawnSync(process.execPath, [compiler, '-p', config]).stdout.toString()).toBe('');
  });

  test('both samples of the README run and end by themselves', async () => {
    for (const [no, sample] of SAMPLES.entries()) {
      const file = join(home, `sample-${no}.mjs`);
      writeFileSync(file, sample.replaceAll("'./dist/", "'../../dist/"));
      const child = spawn(process.execPath, [file], { env: { ...process.env, ...environment } });
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
      const code = await new Promise((end) => child.once('close', end));
      expect([code, output]).toEqual([0, expect.stringContaining("outcome: 'settled'")]);
    }
  });

  const ask = (operationId: string, ...flags: string[]) =>
    runCli(
      [
        ...['call', '--account', 'me', '--route', 'fake-direct', '--max-tokens', '5'],
        ...['--prompt', 'Hello', '--operation', operationId, ...flags],
      ],
      environment,
    );

  test('a repeated call says that it joined, and is charged once', async () => {
    const first = await ask('again');
    const second = await ask('again');
    const third = await ask('again', '--json');
    expect(first.stdout).not.toContain('joined');
    expect(second.stdout).toContain('operation: again (joined: it was asked for before');
    expect(JSON.parse(third.stdout)).toMatchObject({ joined: true, chargedAmount: '5' });
  });

  test('a call that the provider rejects ends in the word of ops list, with what was said', async () => {
    await stage.provider.behave({ match: { model: 'fake-priced' }, do: { status: 401 } });
    const run = await ask('rejected');
    await stage.provider.forgetRules();
    const listed = await runCli(['ops', 'list', '--state', 'released'], environment);
    expect(listed.stdout).toContain('rejected');
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('no answer: released');
    expect(run.stderr).toContain('the call ended as released');
    expect(run.stderr).toContain('documented_rejection');
    expect(run.stderr).toContain('npx holdfast ops show rejected');
  });

  test('the timeline of a call never says that it was dispatched and not sent', async () => {
    const call = createHoldfastClient({ client: stage.temporal }).call({
      accountId: 'me',
      operationId: 'told',
      route: 'fake-direct',
      maxTokens: 5,
      request: { messages: [{ role: 'user', content: 'Hi' }] },
    });
    await call.admit();
    await call.result();
    const told = (await call.timeline()).map(({ what }) => what);
    expect(told).toContain('dispatched: the send is handed out');
    expect(told.join()).not.toContain('not_sent');
  });

  test('temporal finds the program where npm start does, with an address that was given', async () => {
    const run = await runCli(['temporal', '--', '--version'], environment);
    expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('temporal version')]);
  });
});

describe('a database of the user', () => {
  const name = `given_${process.pid}`;
  const at = (user?: { name: string; password: string }): string => {
    const url = new URL(inject('databaseAdminUrl'));
    url.pathname = `/${name}`;
    if (user !== undefined) [url.username, url.password] = [user.name, user.password];
    return url.toString();
  };

  afterAll(async () => {
    const client = new pg.Client({ connectionString: inject('databaseAdminUrl') });
    await client.connect();
    await client.query(`drop database if exists ${name} with (force)`);
    await client.query(`drop role if exists ${name}_app`);
    await client.end();
  });

  test('is refused with the way out until it is set up, and then takes what the example declares', async () => {
    const environment = {
      DATABASE_ADMIN_URL: at(),
      DATABASE_URL: at({ name: `${name}_app`, password: 'for-tests-only' }),
    };
    const cwd = mkdtempSync(join(tmpdir(), 'holdfast-given-'));
    writeFileSync(
      join(cwd, 'holdfast.yaml'),
      readFileSync(join(root, 'holdfast.example.yaml'), 'utf8'),
    );
    const early = await runCli(['ops', 'list'], environment, cwd);
    expect(early.stderr).toContain('LEDGER_ACCESS_DENIED');
    expect(early.stderr).toContain('npx holdfast db setup');

    const { hostname, port } = new URL(at());
    const place = `${hostname}:${port}/${name}`;
    const setUp = await runCli(['db', 'setup'], environment, cwd);
    expect([setUp.code, setUp.stdout]).toEqual([
      0,
      expect.stringMatching(`^database ${place}, application's role ${name}_app\napplied `),
    ]);
    const applied = await runCli(['config', 'apply'], environment, cwd);
    expect(applied.stdout.split('\n')[0]).toBe(`holdfast.yaml to database ${place}`);
    expect(applied.stdout).toMatch(/budget +search +created/);
    expect(setUp.stdout + applied.stdout).not.toContain('for-tests-only');
    expect((await runCli(['ops', 'list'], environment, cwd)).code).toBe(0);
  });
});
