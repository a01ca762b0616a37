import { parseArgs } from 'node:util';
import { parsePrice } from './book/prices.js';

export type Flags = {
  readonly port: number;
  readonly truthFile: string;
  readonly prices: readonly string[];
  /** Jobs tick by themselves at this pace; left out, by order alone. */
  readonly tickMs: number | undefined;
  /** Ends when its stdin does: whoever started it holds the other end. */
  readonly endWithStdin: boolean;
};

export type FlagsRead =
  | { readonly status: 'read'; readonly flags: Flags }
  | { readonly status: 'misuse'; readonly message: string };

const USAGE =
  'Usage: --truth FILE [--port N] [--price MODEL=N | MODEL=N/request | MODEL=N/tick] ... ' +
  '[--tick-ms N] [--end-with-stdin]';

const LONGEST_TICK_MS = 86_400_000;

type Values = {
  port: string;
  truth?: string;
  price: string[];
  'tick-ms'?: string;
  'end-with-stdin': boolean;
};

export function readFlags(args: readonly string[]): FlagsRead {
  let values: Values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '0' },
        truth: { type: 'string' },
        price: { type: 'string', multiple: true, default: [] },
        'tick-ms': { type: 'string' },
        'end-with-stdin': { type: 'boolean', default: false },
      },
      strict: true,
      allowPositionals: false,
    }));
  } catch (error) {
    return misuse(error instanceof Error ? error.message : String(error));
  }
  const { port, truth, price: prices, 'tick-ms': tick } = values;
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) return misuse(`--port ${port} is no port.`);
  if (truth === undefined || truth === '') return misuse('--truth is missing.');
  const wrong = prices.find((text) => parsePrice(text) === undefined);
  if (wrong !== undefined) return misuse(`--price ${wrong} is no price.`);
  const tickMs = tick === undefined ? undefined : Number(tick);
  if (tickMs !== undefined && !isPace(tickMs)) return misuse(`--tick-ms ${tick ?? ''} is no pace.`);
  return {
    status: 'read',
    flags: {
      port: Number(port),
      truthFile: truth,
      prices,
      tickMs,
      endWithStdin: values['end-with-stdin'],
    },
  };
}

function isPace(ms: number): boolean {
  return Number.isInteger(ms) && ms >= 1 && ms <= LONGEST_TICK_MS;
}

function misuse(message: string): FlagsRead {
  return { status: 'misuse', message: `${message}\n${USAGE}` };
}
