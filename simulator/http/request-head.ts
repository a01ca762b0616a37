import type { SimulatorContext } from './delivery.js';

/** Any token will do: the provider tells a missing one from one that is there. */
export function hasCredential(context: SimulatorContext): boolean {
  return /^Bearer\s+\S/i.test(context.req.header('authorization') ?? '');
}

export function keyOf(context: SimulatorContext): string | null {
  const key = context.req.header('idempotency-key') ?? '';
  return key === '' ? null : key;
}
