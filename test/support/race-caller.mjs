// One of several processes that race for a budget: places `count` holds at once and prints what it
// was answered. Arguments: database url, first number, count, output tokens.
import { openLedger } from '../../dist/ledger/connection.js';
import { placeHold } from '../../dist/ledger/admit.js';

const [databaseUrl, first, count, request] = process.argv.slice(2);
const ledger = openLedger({ databaseUrl, poolSizeMax: 16, stepLimitMs: 30_000 });
const template = JSON.parse(request);
await ledger.query({ name: 'warm', text: 'select 1' });
process.stdout.write('ready\n');
await new Promise((resolve) => process.stdin.once('data', resolve));
const answers = await Promise.all(
  Array.from({ length: Number(count) }, (_, index) =>
    placeHold(ledger, { ...template, operation: `race-${Number(first) + index}` }),
  ),
);
process.stdout.write(
  `${JSON.stringify(answers.map((a) => (a.status === 'refused' ? a.refusal.reason : a.status)))}\n`,
);
await ledger.close();
process.stdin.destroy();
