// A theatre on the servers of the test run.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { openTheatre, type Theatre } from '../../scenario-runner/run/theatre.js';
import { SEARCH_ATTRIBUTE_TYPES } from '../../workflows/search-attributes.js';

export const CHECKOUT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export function openTestTheatre(spareCount: number): Promise<Theatre> {
  return openTheatre({
    distDir: join(CHECKOUT, 'dist'),
    adminUrl: inject('databaseAdminUrl'),
    temporalAddress: inject('temporalAddress'),
    namespace: 'default',
    uiUrl: null,
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    spareCount,
    tell: () => undefined,
    announce: () => undefined,
  });
}
