import type { RouteSettings } from '../domain/route.js';
import type { Ledger } from '../ledger/connection.js';
import type { ProviderPort } from '../providers/port.js';
import type { Logger } from 'pino';
import type { Telemetry } from './telemetry.js';

/** What the composition root hands to the activities. */
export interface ActivityDependencies {
  readonly ledger: Ledger;
  readonly providers: ReadonlyMap<string, ProviderPort>;
  readonly routes: ReadonlyMap<string, RouteSettings>;
  readonly logger: Logger;
  readonly telemetry: Telemetry;
}
