import { afterEach } from 'vitest';
import { createSimulator } from '../../simulator/create-simulator.js';
import type { Simulator, SimulatorOptions } from '../../simulator/create-simulator.js';

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON, or an empty object where it is none. */
  readonly json: Record<string, unknown>;
};

export type Send = {
  readonly key?: string;
  readonly simulate?: object;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

export type Caller = ReturnType<typeof createCaller>;

const chatBody = {
  model: 'fake-priced',
  messages: [{ role: 'user', content: 'Say something.' }],
  max_tokens: 4,
};

/** A client of a simulator at `url`, with the control of it beside. */
export function createCaller(url: string) {
  async function ask(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: 'Bearer any', ...(init.headers as Record<string, string>) },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: toJson(text) };
  }
  const post = (path: string, body: object): Promise<Answer> =>
    ask(path, { method: 'POST', body: JSON.stringify(body) });
  return {
    url,
    ask,
    send: ({ key, simulate, body, headers, signal }: Send = {}): Promise<Answer> =>
      ask('/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ ...chatBody, ...body }),
        headers: {
          ...(key === undefined ? {} : { 'idempotency-key': key }),
          ...(simulate === undefined ? {} : { 'x-simulate': JSON.stringify(simulate) }),
          ...headers,
        },
        ...(signal === undefined ? {} : { signal }),
      }),
    receipt: (key: string): Promise<Answer> =>
      ask(`/v1/receipts/by-key/${encodeURIComponent(key)}`),
    behave: (rule: object): Promise<Answer> => post('/control/behaviours', rule),
    control: (word: string, body: object): Promise<Answer> => post(`/control/${word}`, body),
    truth: async (): Promise<Truth> => (await ask('/truth')).json as unknown as Truth,
  };
}

export type Truth = {
  readonly requests: readonly {
    readonly seq: number;
    readonly tick: number;
    readonly at: string;
    readonly realAt: string;
    readonly key: string | null;
    readonly model: string | null;
    readonly maxTokens: number | null;
    readonly id: string | null;
    readonly outcome: string;
    readonly reason: string | null;
    readonly charged: string;
    readonly chargedAt: string | null;
    readonly chargedRealAt: string | null;
    readonly executionNo: number | null;
    readonly answered: { readonly status: number } | null;
  }[];
  readonly totals: {
    readonly received: number;
    readonly accepted: number;
    readonly charged: string;
  };
  readonly byKey: Readonly<Record<string, object>>;
  readonly charges: readonly {
    readonly key: string | null;
    readonly total: string;
    readonly delta: string;
    readonly cause: string;
    readonly realAt: string;
  }[];
  readonly lookups: readonly { readonly key: string | null; readonly answer: string }[];
  readonly reports: readonly {
    readonly via: string;
    readonly key: string | null;
    readonly charge: string | null;
  }[];
};

function toJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const running: Simulator[] = [];

afterEach(async () => {
  for (const simulator of running.splice(0)) await simulator.close();
});

/** Starts a simulator that ends with the test. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Caller> {
  const simulator = createSimulator(options);
  running.push(simulator);
  const { url } = await simulator.listen();
  return createCaller(url);
}

/** Asks until `isTrue`, because what a server books is not ordered with what its client has read. */
export async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + 5000;
  while (!(await isTrue())) {
    if (Date.now() > endMs) throw new Error('It did not become true within 5 s.');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export async function isPending(promise: Promise<unknown>, ms = 60): Promise<boolean> {
  const pending = Symbol('pending');
  const timeout = new Promise((resolve) => setTimeout(resolve, ms, pending));
  return (await Promise.race([promise.catch(() => undefined), timeout])) === pending;
}
