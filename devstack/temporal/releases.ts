/** The release of the `temporal` program that is fetched: server 1.32.0, UI 2.54.1. */
export const CLI_VERSION = '1.9.1';

/** The newest release that `go install` builds: server 1.29.1. */
export const GO_CLI_VERSION = '1.5.1';

/** Older servers lack what the workflows rely on. */
export const SERVER_VERSION_MIN = '1.29.0';

/** SHA-256 of the program itself, not of the archive it comes in. A platform without one is not fetched for. */
const SHA256_BY_RELEASE: Readonly<Record<string, string>> = {
  '1.9.1-linux-x64': '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  '1.9.1-linux-arm64': '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
  '1.9.1-darwin-x64': 'd5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc',
  '1.9.1-darwin-arm64': '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
};

export function recordedSha256(
  cliVersion: string,
  platform = `${process.platform}-${process.arch}`,
): string | null {
  return SHA256_BY_RELEASE[`${cliVersion}-${platform}`] ?? null;
}
