// `npm run bench -- NAME`: prints one JSON object a row. Figures of a shared machine are shapes.

import { benchAdmission } from './admission.js';
import { benchSupervisedCall } from './supervised-call.js';
import { benchWaiting } from './waiting.js';

const BENCHES: Readonly<Record<string, (flags: ReadonlyMap<string, string>) => Promise<void>>> = {
  admission: benchAdmission,
  'supervised-call': benchSupervisedCall,
  waiting: benchWaiting,
};

const name = process.argv[2] ?? '';
const bench = BENCHES[name];
if (bench === undefined) {
  process.stderr.write(
    `bench: "${name}" is unknown; give one of ${Object.keys(BENCHES).join(', ')}\n`,
  );
  process.exit(2);
}
// `--count 2000 --json`: rows are JSON with or without.
const [, , , ...rest] = process.argv;
const flags = new Map<string, string>();
for (const [index, word] of rest.entries()) {
  if (word.startsWith('--')) flags.set(word.slice(2), rest[index + 1] ?? '');
}
await bench(flags);
process.exit(0);
