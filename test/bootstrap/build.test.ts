import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refuseNodeVersion } from '../../bootstrap.mjs';
import { createCheckout, type Checkout } from './checkout.js';

let checkout: Checkout;

beforeEach(() => {
  checkout = createCheckout();
});

afterEach(() => {
  checkout.dispose();
});

const nothingSaid = { code: 0, stdout: '', stderr: '' };

describe('the version of Node', () => {
  test.each(['18.20.4', '20.18.3', '9.0.0'])('%s is refused in one sentence', (version) => {
    expect(refuseNodeVersion(version)).toBe(
      `Holdfast needs Node 20.19 or newer, and this is Node ${version}.`,
    );
  });

  test.each(['20.19.0', '20.20.2', '22.0.0', '100.1.0'])('%s is accepted', (version) => {
    expect(refuseNodeVersion(version)).toBeUndefined();
  });

  test('an old Node ends the command with 2 before anything is built', async () => {
    checkout.write('domain/one.ts', 'export const one = 1;\n');
    const pretend =
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } })";
    const ended = await checkout.bootstrap([
      '--import',
      `data:text/javascript,${encodeURIComponent(pretend)}`,
    ]);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toMatch(/^holdfast: Holdfast needs Node 20\.19 .* 18\.20\.4\.\n$/);
    expect(checkout.has('dist')).toBe(false);
  });
});

describe('what is built', () => {
  test('a first run compiles the modules, copies the SQL and leaves stdout alone', async () => {
    checkout.write('domain/one.ts', 'export const one: number = 1;\n');
    checkout.write('ledger/migrations/0001-create-hold.sql', 'select 1;\n');
    checkout.write('ledger/schema.sql', '-- all of it\n');
    const { code, stdout } = await checkout.bootstrap();
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(checkout.read('dist/domain/one.js')).toContain('const one = 1');
    expect(checkout.read('dist/ledger/migrations/0001-create-hold.sql')).toBe('select 1;\n');
    expect(checkout.read('dist/ledger/schema.sql')).toBe('-- all of it\n');
  });

  test('a checkout with nothing to compile is ready', async () => {
    expect((await checkout.bootstrap()).code).toBe(0);
    expect(await checkout.bootstrap()).toEqual(nothingSaid);
  });

  test('nothing is built and nothing is said when nothing changed', async () => {
    checkout.write('domain/one.ts', 'export const one = 1;\n');
    await checkout.bootstrap();
    checkout.write('dist/domain/one.js', 'left as it is');
    expect(await checkout.bootstrap()).toEqual(nothingSaid);
    expect(checkout.read('dist/domain/one.js')).toBe('left as it is');
  });

  test('a changed module is compiled again', async () => {
    checkout.write('domain/one.ts', 'export const one = 1;\n');
    await checkout.bootstrap();
    checkout.write('domain/one.ts', 'export const one = 100;\n');
    const { stderr } = await checkout.bootstrap();
    expect(stderr).toContain('compiling 1 files');
    expect(checkout.read('dist/domain/one.js')).toContain('100');
  });

  test('a changed migration is copied again', async () => {
    checkout.write('ledger/migrations/0001-create-hold.sql', 'select 1;\n');
    await checkout.bootstrap();
    checkout.write('ledger/migrations/0001-create-hold.sql', 'select 2;\n');
    await checkout.bootstrap();
    expect(checkout.read('dist/ledger/migrations/0001-create-hold.sql')).toBe('select 2;\n');
  });

  test('what a deleted source was compiled to is deleted', async () => {
    checkout.write('domain/one.ts', 'export const one = 1;\n');
    checkout.write('domain/two.ts', 'export const two = 2;\n');
    checkout.write('ledger/schema.sql', 'select 1;\n');
    await checkout.bootstrap();
    checkout.remove('domain/two.ts');
    checkout.remove('ledger/schema.sql');
    await checkout.bootstrap();
    expect(checkout.has('dist/domain/one.js')).toBe(true);
    expect(checkout.has('dist/domain/two.js')).toBe(false);
    expect(checkout.has('dist/ledger/schema.sql')).toBe(false);
  });

  test('a compiled file that somebody deleted is made again', async () => {
    checkout.write('domain/one.ts', 'export const one = 1;\n');
    await checkout.bootstrap();
    checkout.remove('dist/domain/one.js');
    await checkout.bootstrap();
    expect(checkout.has('dist/domain/one.js')).toBe(true);
  });

  test('a source that does not compile ends with 3, what the compiler said, and no stamp', async () => {
    checkout.write('domain/one.ts', "export const one: number = 'one';\n");
    for (const ended of [await checkout.bootstrap(), await checkout.bootstrap()]) {
      expect(ended.code).toBe(3);
      expect(ended.stderr).toContain('holdfast: compiling 1 files failed');
      expect(ended.stderr).toContain("Type 'string' is not assignable to type 'number'");
    }
  });

  test('the workflows are bundled, and bundled again when they change', async () => {
    checkout.write('workflows/index.ts', "export { count } from './count.js';\n");
    checkout.write('workflows/count.ts', 'export const count = async () => 1234;\n');
    await checkout.bootstrap();
    expect(checkout.read('dist/workflow-bundle.js')).toContain('1234');
    checkout.write('workflows/count.ts', 'export const count = async () => 5678;\n');
    await checkout.bootstrap();
    expect(checkout.read('dist/workflow-bundle.js')).toContain('5678');
  });
});
