// The naive driver
// ----------------
// What gateways do, for comparison: a counter in memory, a worst case reserved before the call, and
// the reservation given back when the call times out. It uses no code of the product.

export interface NaiveOptions {
  readonly providerUrl: string;
  readonly model: string;
  readonly limit: bigint;
  readonly worstCase: bigint;
  readonly maxTokens: number;
  readonly keyPrefix: string;
}

export type NaiveOutcome = 'answered' | 'timed_out' | 'refused';

export interface NaiveDriver {
  /** One call, given up by its caller after `timeoutMs`. */
  call(name: string, timeoutMs: number): Promise<NaiveOutcome>;
  admittedCount(): number;
}

export function createNaiveDriver(options: NaiveOptions): NaiveDriver {
  let spent = 0n;
  let reserved = 0n;
  let admitted = 0;
  return {
    async call(name, timeoutMs) {
      if (spent + reserved + options.worstCase > options.limit) return 'refused';
      reserved += options.worstCase;
      admitted += 1;
      try {
        const response = await fetch(`${options.providerUrl}/v1/chat/completions`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            authorization: 'Bearer naive',
            'idempotency-key': `${options.keyPrefix}${name}`,
          },
          body: JSON.stringify({
            model: options.model,
            max_tokens: options.maxTokens,
            messages: [{ role: 'user', content: 'Count to forty.' }],
          }),
          signal: AbortSignal.timeout(timeoutMs),
        });
        const answer = (await response.json()) as { charge: { amount: string } };
        spent += BigInt(answer.charge.amount);
        return 'answered';
      } catch {
        // The mistake on show: silence is taken for "nothing was charged".
        return 'timed_out';
      } finally {
        reserved -= options.worstCase;
      }
    },
    admittedCount: () => admitted,
  };
}
