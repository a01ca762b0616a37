// The oracle's verdict on a play, as figures beside those that the file states.

import { toAmount } from '../play/numbers.js';
import { check, type Play } from '../play/play.js';
import { asOwner } from '../play/raw-ledger.js';
import { judge } from './oracle.js';
import { readJournal } from './read-journal.js';
import { readTruth } from './read-truth.js';

/** `fromEntry`: what stands in the journal up to it belongs to plays before this one. */
export async function judgeRun(play: Play, fromEntry: bigint): Promise<void> {
  const { scenario, stage } = play;
  const journal = await asOwner(stage.databaseAdminUrl, (client) =>
    readJournal(client, { since: fromEntry }),
  );
  const truth = readTruth(await stage.provider.rawTruth(), play.fromSeq);
  const statedExcess = toAmount(scenario.expect?.excess ?? 0, 'credit', scenario.numbers);
  const verdict = judge({ truth, journal, statedExcess });
  for (const { name, expected, actual, ok, detail } of verdict.checks) {
    check(play, {
      ...{ name, expected, actual, ok },
      source: `the oracle over ${verdict.instantCount} instants`,
      line: scenario.expectLine,
    });
    play.notes.push(...detail.map((each) => `${name}: ${each}`));
  }
}
