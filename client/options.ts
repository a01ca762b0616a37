// What a client is made with.

import type { Client } from '@temporalio/client';

export interface BodyStorePort {
  put(text: string): Promise<string>;
  get(reference: string): Promise<string | undefined>;
}

export interface HoldfastClientOptions {
  readonly client: Client;
  /** With one, request and answer stay out of the workflow history. */
  readonly bodyStore?: BodyStorePort;
  /** The workers' queue, where it is not `holdfast`. */
  readonly taskQueue?: string;
}
