import { createSimulator } from './create-simulator.js';
import type { Simulator } from './create-simulator.js';
import { readFlags } from './flags.js';

const read = readFlags(process.argv.slice(2));
if (read.status === 'misuse') {
  process.stderr.write(`${read.message}\n`);
  process.exitCode = 2;
} else {
  const { port, truthFile, prices, tickMs, endWithStdin } = read.flags;
  try {
    const simulator = createSimulator({ truthFile, prices, tickMs });
    endOnSignal(simulator);
    if (endWithStdin) process.stdin.resume().once('end', () => void end(simulator));
    const address = await simulator.listen(port);
    process.stdout.write(`${JSON.stringify({ ready: true, ...address })}\n`);
  } catch (error) {
    process.stderr.write(`${explainFailure(error, port)}\n`);
    process.exitCode = 3;
  }
}

function endOnSignal(simulator: Simulator): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void end(simulator));
  }
}

/** A stdin that is listened to would keep the process up until its other end dies. */
async function end(simulator: Simulator): Promise<void> {
  await simulator.close();
  process.stdin.destroy();
}

function explainFailure(error: unknown, port: number): string {
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    return `Port ${port} is in use by another process.`;
  }
  return error instanceof Error ? error.message : String(error);
}
