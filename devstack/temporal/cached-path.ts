import { join } from 'node:path';

export function cachedBinaryPath(cacheDir: string, cliVersion: string): string {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  return join(cacheDir, `temporal-${cliVersion}-${process.platform}-${process.arch}${suffix}`);
}
