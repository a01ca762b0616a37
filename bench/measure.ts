// Measuring: callers in a loop for a fixed time, and what came of it.

export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
}

/** `callers` loops at once for `ms`; `work` gets a number that no other call has. */
export async function measure(
  callers: number,
  ms: number,
  work: (no: number) => Promise<unknown>,
): Promise<Measured> {
  const took: number[] = [];
  let no = 0;
  const startedAt = performance.now();
  const until = startedAt + ms;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < until) {
        const before = performance.now();
        await work((no += 1));
        took.push(performance.now() - before);
      }
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  took.sort((one, other) => one - other);
  const at = (share: number): number => took[Math.floor(took.length * share)] ?? 0;
  return {
    perSecond: round(took.length / seconds),
    p50Ms: round(at(0.5)),
    p99Ms: round(at(0.99)),
    count: took.length,
  };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export function printRow(row: Record<string, string | number>): void {
  process.stdout.write(`${JSON.stringify(row)}\n`);
}
