// Finds a browser for the tests of the Temporal UI: the one that CHROME_PATH names, else the first of the usual ones.

import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';

const NAMES = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
  'microsoft-edge',
];
const APPLICATIONS = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Where it is, or why there is none. A CHROME_PATH that is wrong is told, and not replaced by a guess. */
export function findBrowser(environment) {
  const { CHROME_PATH: named = '', PATH: searched = '' } = environment;
  if (named !== '') {
    return isProgram(named)
      ? { kind: 'found', file: named }
      : { kind: 'missing', why: `CHROME_PATH is "${named}", which is no program` };
  }
  const folders = searched.split(path.delimiter).filter((folder) => folder !== '');
  const places = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  const file = [...places, ...APPLICATIONS].find(isProgram);
  if (file !== undefined) return { kind: 'found', file };
  return { kind: 'missing', why: `none of ${NAMES.join(', ')} is on the PATH; set CHROME_PATH` };
}
