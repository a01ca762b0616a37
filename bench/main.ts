// `npm run bench -- NAME`: prints one JSON object a row. Figures of a shared machine are shapes.

import { benchAdmission } from './admission.js';
import { benchSupervisedCall } from './supervised-call.js';

const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  admission: benchAdmission,
  'supervised-call': benchSupervisedCall,
};

const name = process.argv[2] ?? '';
const bench = BENCHES[name];
if (bench === undefined) {
  process.stderr.write(
    `bench: "${name}" is unknown; give one of ${Object.keys(BENCHES).join(', ')}\n`,
  );
  process.exit(2);
}
await bench();
