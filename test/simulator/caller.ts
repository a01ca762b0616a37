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

const jobBody = { model: 'fake-job', limit: { ticks: 20 }, input: { text: 'Do something.' } };

type Asked = { readonly simulate?: object };

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
  const start = (path: string, usual: object, send: Send): Promise<Answer> => {
    const { key, simulate, body, headers, signal } = send;
    return ask(path, {
      method: 'POST',
      body: JSON.stringify({ ...usual, ...body }),
      headers: {
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...told(simulate),
        ...headers,
      },
      ...(signal === undefined ? {} : { signal }),
    });
  };
  const job = (path: string, { simulate }: Asked = {}, method = 'GET'): Promise<Answer> =>
    ask(`/v1/jobs/${path}`, { method, headers: told(simulate) });
  return {
    url,
    ask,
    send: (send: Send = {}): Promise<Answer> => start('/v1/chat/completions', chatBody, send),
    create: (send: Send = {}): Promise<Answer> => start('/v1/jobs', jobBody, send),
    status: (key: string, asked?: Asked): Promise<Answer> =>
      job(`by-key/${encodeURIComponent(key)}`, asked),
    charge: (key: string, asked?: Asked): Promise<Answer> =>
      job(`by-key/${encodeURIComponent(key)}/charge`, asked),
    statusOf: (id: unknown): Promise<Answer> => job(encodeURIComponent(String(id))),
    chargeOf: (id: unknown): Promise<Answer> => job(`${encodeURIComponent(String(id))}/charge`),
    cancel: (id: unknown, asked?: Asked): Promise<Answer> =>
      job(`${encodeURIComponent(String(id))}/cancel`, asked, 'POST'),
    tick: (count: number): Promise<Answer> => post('/control/ticks', { count }),
    receipt: (key: string): Promise<Answer> =>
      ask(`/v1/receipts/by-key/${encodeURIComponent(key)}`),
    behave: (rule: object): Promise<Answer> => post('/control/behaviours', rule),
    control: (word: string, body: object): Promise<Answer> => post(`/control/${word}`, body),
    truth: async (): Promise<Truth> => (await ask('/truth')).json as unknown as Truth,
  };
}

function told(simulate: object | undefined): Record<string, string> {
  return simulate === undefined ? {} : { 'x-simulate': JSON.stringify(simulate) };
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
    readonly limitTicks: number | null;
    readonly state: string | null;
    readonly bill: string | null;
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
  readonly cancels: readonly {
    readonly key: string | null;
    readonly answer: string;
    readonly honouredAtTick: number | null;
  }[];
  readonly charges: readonly {
    readonly key: string | null;
    readonly total: string;
    readonly delta: string;
    readonly cause: string;
    readonly realAt: string;
  }[];
  readonly lookups: readonly {
    readonly question: string;
    readonly key: string | null;
    readonly answer: string;
  }[];
  readonly reports: readonly {
    readonly via: string;
    readonly key: string | null;
    readonly charge: string | null;
    readonly final: boolean;
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

/** A simulator that ends with the test, or before. */
export async function startStoppable(
  options: SimulatorOptions,
): Promise<{ readonly caller: Caller; readonly stop: () => Promise<void> }> {
  const simulator = createSimulator(options);
  running.push(simulator);
  const { url } = await simulator.listen();
  return {
    caller: createCaller(url),
    stop: () => {
      running.splice(running.indexOf(simulator), 1);
      return simulator.close();
    },
  };
}

/** Starts a simulator that ends with the test. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Caller> {
  return (await startStoppable(options)).caller;
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
