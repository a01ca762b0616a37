import { parseArgs } from 'node:util';
import { parsePrice } from './book/prices.js';

export type Flags = {
  readonly port: number;
  readonly truthFile: string;
  readonly prices: readonly string[];
  /** Ends when its stdin does: whoever started it holds the other end. */
  readonly endWithStdin: boolean;
};

export type FlagsRead =
  | { readonly status: 'read'; readonly flags: Flags }
  | { readonly status: 'misuse'; readonly message: string };

const USAGE =
  'Usage: --truth FILE [--port N] [--price MODEL=N | --price MODEL=N/request] ... [--end-with-stdin]';

export function readFlags(args: readonly string[]): FlagsRead {
  let values: { port: string; truth?: string; price: string[]; 'end-with-stdin': boolean };
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '0' },
        truth: { type: 'string' },
        price: { type: 'string', multiple: true, default: [] },
        'end-with-stdin': { type: 'boolean', default: false },
      },
      strict: true,
      allowPositionals: false,
    }));
  } catch (error) {
    return misuse(error instanceof Error ? error.message : String(error));
  }
  const { port, truth, price: prices } = values;
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) return misuse(`--port ${port} is no port.`);
  if (truth === undefined || truth === '') return misuse('--truth is missing.');
  const wrong = prices.find((text) => parsePrice(text) === undefined);
  if (wrong !== undefined) return misuse(`--price ${wrong} is no price.`);
  return {
    status: 'read',
    flags: {
      port: Number(port),
      truthFile: truth,
      prices,
      endWithStdin: values['end-with-stdin'],
    },
  };
}

function misuse(message: string): FlagsRead {
  return { status: 'misuse', message: `${message}\n${USAGE}` };
}
