import { WaitedInVain } from './check.js';

/**
 * Asks `look` until it answers something, and throws WaitedInVain with `sentence` after `limitMs`. It
 * never sleeps for a fixed time where it can wait for a state.
 */
export async function waitUntil<T>(
  sentence: string | (() => string),
  look: () => Promise<T | undefined>,
  limitMs = 20_000,
): Promise<T> {
  const until = performance.now() + limitMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (performance.now() > until) {
      const said = typeof sentence === 'string' ? sentence : sentence();
      throw new WaitedInVain(`waited ${limitMs} ms in vain: ${said}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
