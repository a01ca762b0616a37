#!/usr/bin/env node
import { ensureBuilt } from './bootstrap.mjs';

await ensureBuilt({ quiet: true });
// In this process, so that its id is the one a caller can signal.
await import('./dist/cli/main.js');
