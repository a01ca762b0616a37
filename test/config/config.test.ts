import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../config/config.js';

const healthOf = (environment: Record<string, string>) => loadConfig(environment).health;

describe('where a worker serves its health', () => {
  test('is nowhere unless a port is given, also when the variable is set to nothing', () => {
    expect(healthOf({})).toBeUndefined();
    expect(healthOf({ HOLDFAST_HEALTH_HOST: '0.0.0.0' })).toBeUndefined();
    expect(healthOf({ HOLDFAST_HEALTH_PORT: '' })).toBeUndefined();
  });

  test('is this machine alone unless a host is given', () => {
    expect(healthOf({ HOLDFAST_HEALTH_PORT: '9464' })).toEqual({ host: '127.0.0.1', port: 9464 });
    const open = { HOLDFAST_HEALTH_PORT: '0', HOLDFAST_HEALTH_HOST: '0.0.0.0' };
    expect(healthOf(open)).toEqual({ host: '0.0.0.0', port: 0 });
  });

  test.each(['65536', '-1', '94 64', 'http', '1e3', '0x10'])('%s is refused', (port) => {
    expect(() => healthOf({ HOLDFAST_HEALTH_PORT: port })).toThrow(
      'HOLDFAST_HEALTH_PORT: is not a port; give 1 to 65535, or 0 for any free one',
    );
  });
});
