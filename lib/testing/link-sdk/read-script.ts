import { readFileSync } from 'node:fs';

/**
 * The script of the SDK. Loaded only where it is asked for: a CommonJS jest, which compiles this package, knows no
 * `import.meta`.
 */
export function readScript(): string {
  return readFileSync(new URL('./link-sdk.js', import.meta.url), 'utf8');
}
