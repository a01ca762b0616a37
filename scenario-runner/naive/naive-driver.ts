// The naive driver
// ----------------
// What gateways do, for comparison: counters in memory, a reservation for the route that was asked
// for, given back when the call times out, fails or falls back, and no price read as a price of 0.
// It uses no code of the product.

export interface NaiveOptions {
  readonly providerUrl: string;
  readonly limit: bigint;
  /** Credits a completion token; a route that is not here costs nothing, it believes. */
  readonly prices: ReadonlyMap<string, bigint>;
  readonly fallbacks: ReadonlyMap<string, readonly string[]>;
}

export interface NaiveCall {
  readonly name: string;
  readonly route: string;
  readonly maxTokens: number;
  readonly timeoutMs: number;
}

export interface NaiveOutcome {
  readonly verdict: 'admitted' | 'refused';
  readonly answered: boolean;
  readonly attemptCount: number;
}

export interface NaiveDriver {
  call(call: NaiveCall): Promise<NaiveOutcome>;
}

export function createNaiveDriver(options: NaiveOptions): NaiveDriver {
  let spent = 0n;
  let reserved = 0n;
  const priceOf = (route: string): bigint => options.prices.get(route) ?? 0n;
  return {
    async call(call) {
      const reservation = priceOf(call.route) * BigInt(call.maxTokens);
      if (spent + reserved + reservation > options.limit) {
        return { verdict: 'refused', answered: false, attemptCount: 0 };
      }
      reserved += reservation;
      const routes = [call.route, ...(options.fallbacks.get(call.route) ?? [])];
      let attemptCount = 0;
      try {
        for (const route of routes) {
          attemptCount += 1;
          const usedTokens = await send(options.providerUrl, { ...call, route, attemptCount });
          if (usedTokens === undefined) continue;
          spent += priceOf(route) * BigInt(usedTokens);
          return { verdict: 'admitted', answered: true, attemptCount };
        }
        return { verdict: 'admitted', answered: false, attemptCount };
      } finally {
        // The mistake on show: silence is taken for "nothing was charged".
        reserved -= reservation;
      }
    },
  };
}

/** The completion tokens of the answer; undefined when none came in time. */
async function send(
  providerUrl: string,
  call: NaiveCall & { readonly attemptCount: number },
): Promise<number | undefined> {
  try {
    const response = await fetch(`${providerUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer naive',
        'idempotency-key': `naive-${call.name}-${call.attemptCount}`,
      },
      body: JSON.stringify({
        model: call.route,
        max_tokens: call.maxTokens,
        messages: [{ role: 'user', content: 'Count.' }],
      }),
      signal: AbortSignal.timeout(call.timeoutMs),
    });
    if (!response.ok) return undefined;
    const { usage } = (await response.json()) as { usage?: { completion_tokens?: number } };
    return usage?.completion_tokens ?? 0;
  } catch {
    return undefined;
  }
}
