export function refuseNodeVersion(version: string): string | undefined;
export function ensureBuilt(options?: { quiet?: boolean }): Promise<void>;
