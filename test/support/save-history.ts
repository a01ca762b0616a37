// Saves a history for the replay tests, with UPDATE_HISTORIES=1 only: do so when a change of order was
// meant, beside the old ones.

import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';

const FOLDER = fileURLToPath(new URL('../histories', import.meta.url));

/** `name` is `<workflow>-<version>-<what-happened>`. */
export async function saveHistory(handle: WorkflowHandle, name: string): Promise<void> {
  if (process.env['UPDATE_HISTORIES'] !== '1') return;
  mkdirSync(FOLDER, { recursive: true });
  const history = historyToJSON(await handle.fetchHistory());
  writeFileSync(`${FOLDER}/${name}.json`, `${history}\n`);
}
