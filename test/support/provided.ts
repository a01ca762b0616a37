// What the global set-up hands to the tiers that need servers.

declare module 'vitest' {
  interface ProvidedContext {
    /** The superuser of a real Postgres. */
    databaseAdminUrl: string;
    /** A real Temporal server, with the search attributes registered. */
    temporalAddress: string;
    temporalBinary: string;
  }
}

export {};
