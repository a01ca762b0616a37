// The simulator over HTTP: what it is told to do, and what it says really happened.

export interface TrueRequest {
  readonly seq: number;
  readonly realAt: string;
  readonly model: string | null;
  readonly key: string | null;
  readonly outcome: string;
  readonly state: string | null;
  readonly charged: string;
}

export interface TrueCharge {
  readonly realAt: string;
  readonly key: string | null;
  readonly total: string;
  readonly cause: string;
}

export interface TrueCancel {
  readonly realAt: string;
  readonly seq: number;
  readonly key: string | null;
  readonly answer: string;
}

export interface Truth {
  readonly requests: readonly TrueRequest[];
  readonly charges: readonly TrueCharge[];
  readonly cancels: readonly TrueCancel[];
  readonly totals: {
    readonly received: number;
    readonly accepted: number;
    readonly charged: string;
  };
}

export interface BehaviourRule {
  readonly match?: Readonly<Record<string, unknown>> | undefined;
  readonly times?: number | undefined;
  readonly do: Readonly<Record<string, unknown>>;
}

export interface ProviderControl {
  readonly url: string;
  truth(): Promise<Truth>;
  /** The same, as it came, for whoever reads it by rules of their own. */
  rawTruth(): Promise<unknown>;
  behave(rule: BehaviourRule): Promise<void>;
  /** Forgets every rule; executions that began keep theirs. */
  forgetRules(): Promise<void>;
  /** Lets everything that was held back go: answers, charges, lookups. */
  releaseAll(): Promise<void>;
  /** Any order to the provider: `release`, `finish`, `correct`, `lookup`, `clock`. */
  order(name: string, body: object): Promise<void>;
  /** The number of the last request that it received; 0 before the first. */
  newestSeq(): Promise<number>;
  /** The requests with a higher number. */
  requestsAfter(seq: number): Promise<readonly TrueRequest[]>;
  /** The sum of what was charged under keys that begin with `prefix`. */
  chargedUnder(prefix: string): Promise<bigint>;
  /** How many wishes to stop arrived for work under keys that begin with `prefix`. */
  cancelsUnder(prefix: string): Promise<number>;
  /** What became of the newest work under keys that begin with `prefix`. */
  stateUnder(prefix: string): Promise<string>;
  /** How many requests arrived under keys that begin with `prefix`. */
  receivedUnder(prefix: string): Promise<number>;
}

export function chargedBy(requests: readonly TrueRequest[]): bigint {
  return requests.reduce((sum, request) => sum + BigInt(request.charged), 0n);
}

export function createProviderControl(url: string): ProviderControl {
  const rawTruth = async (): Promise<unknown> => (await fetch(`${url}/truth`)).json();
  const truth = async (): Promise<Truth> => (await rawTruth()) as Truth;
  const under = async (prefix: string): Promise<TrueRequest[]> =>
    (await truth()).requests.filter((request) => request.key?.startsWith(prefix) === true);
  const control = async (path: string, body: object): Promise<void> => {
    const response = await fetch(`${url}/control/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok)
      throw new Error(`the provider refused /control/${path}: ${await response.text()}`);
    await response.arrayBuffer();
  };
  return {
    url,
    truth,
    rawTruth,
    async forgetRules() {
      await fetch(`${url}/control/behaviours`, { method: 'DELETE' });
    },
    behave: (rule) => control('behaviours', rule),
    releaseAll: () => control('release', { all: true }),
    order: control,
    newestSeq: async () => Math.max(0, ...(await truth()).requests.map(({ seq }) => seq)),
    requestsAfter: async (after) => (await truth()).requests.filter(({ seq }) => seq > after),
    chargedUnder: async (prefix) => chargedBy(await under(prefix)),
    receivedUnder: async (prefix) => (await under(prefix)).length,
    cancelsUnder: async (prefix) =>
      (await truth()).cancels.filter(({ key }) => key?.startsWith(prefix) === true).length,
    stateUnder: async (prefix) =>
      (await under(prefix)).filter(({ outcome }) => outcome === 'accepted').at(-1)?.state ?? 'none',
  };
}
