// What the global set-up hands to the tiers that need servers.

declare module 'vitest' {
  interface ProvidedContext {
    /** The superuser of a real Postgres. */
    databaseAdminUrl: string;
    /** A real Temporal server, with the search attributes registered. */
    temporalAddress: string;
    /** Of its own web pages; empty where the server was given and nobody said where they are. */
    temporalUiUrl: string;
    temporalBinary: string;
  }
}

export {};
