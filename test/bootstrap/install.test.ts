import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCheckout, type Checkout } from './checkout.js';

let checkout: Checkout;

beforeEach(() => {
  checkout = createCheckout();
});

afterEach(() => {
  checkout.dispose();
});

const pg = (version: string): Record<string, unknown> => ({
  'node_modules/pg': { version, integrity: `sha512-${version}` },
});
const packages = (...parts: Record<string, unknown>[]): string =>
  JSON.stringify({ packages: Object.assign({}, ...parts) as unknown });

const installCount = (): number =>
  checkout.has('npm-calls') ? checkout.read('npm-calls').trim().split('\n').length : 0;

test('the locked packages are installed once for each content of the lock file', async () => {
  checkout.write('package-lock.json', packages({ '': {} }, pg('8.0.0')));
  await checkout.bootstrap();
  await checkout.bootstrap();
  expect(installCount()).toBe(1);
  expect(checkout.read('npm-calls')).toMatch(/^ci --no-audit --no-fund /);
  checkout.write('package-lock.json', packages({ '': {} }, pg('8.1.0')));
  await checkout.bootstrap();
  expect(installCount()).toBe(2);
});

test('packages that somebody installed by hand are not installed again', async () => {
  const optional = { 'node_modules/for-another-machine': { version: '1.0.0', optional: true } };
  checkout.write('package-lock.json', packages({ '': {} }, pg('8.0.0'), optional));
  checkout.write('node_modules/.package-lock.json', packages(pg('8.0.0')));
  expect((await checkout.bootstrap()).code).toBe(0);
  expect(installCount()).toBe(0);
});

test.each([
  ['another version', packages(pg('8.0.1'))],
  ['a package too few', packages()],
  ['a package too many', packages(pg('8.0.0'), { 'node_modules/left-pad': {} })],
])('%s than the lock file names is installed anew', async (_what, installed) => {
  checkout.write('package-lock.json', packages({ '': {} }, pg('8.0.0')));
  checkout.write('node_modules/.package-lock.json', installed);
  await checkout.bootstrap();
  expect(installCount()).toBe(1);
});

test('a failed install ends with 3, shows what npm said, and is tried again', async () => {
  checkout.write('package-lock.json', packages({ '': {} }, pg('8.0.0')));
  checkout.write('npm-fails', '');
  const ended = await checkout.bootstrap();
  expect(ended.code).toBe(3);
  expect(ended.stdout).toBe('');
  expect(ended.stderr).toContain('npm error: no such package');
  expect(ended.stderr).toContain('installing the locked packages (npm ci) failed (1)');
  checkout.remove('npm-fails');
  expect((await checkout.bootstrap()).code).toBe(0);
  expect(installCount()).toBe(2);
});
