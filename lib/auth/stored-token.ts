import { isAccessTokenText, LONGEST_LIFETIME_S, type TokenGrant } from './access-token.js';
import { isJsonObject, parseJson } from './json.js';
import { hardSkew } from './token-lifetime.js';

/** By how much the clocks of two machines may differ, in milliseconds. */
const CLOCK_TOLERANCE_MS = 1_000;

/** What lies in the store, times by the wall clock. `key` tells one client's entry from another's. */
interface StoredToken {
  key: string;
  scope: string;
  accessToken: string;
  issuedAt: number;
  lifetimeS: number;
}

/** @returns undefined for a token that cannot be used twice */
export function writeEntry(
  grant: TokenGrant,
  key: string,
  issuedAt: number,
): { value: string; ttlMs: number } | undefined {
  const { scope, accessToken, expiresIn: lifetimeS } = grant;
  if (lifetimeS === undefined || lifetimeS === 0) return undefined;
  const entry: StoredToken = { key, scope, accessToken, issuedAt, lifetimeS };
  return { value: JSON.stringify(entry), ttlMs: Math.floor(lifetimeS * 1000 - hardSkew(lifetimeS * 1000)) };
}

/** @returns undefined for what is corrupt, of another client or scope, or from the future */
export function readEntry(value: unknown, key: string, scope: string, now: number): TokenGrant | undefined {
  const entry = typeof value === 'string' ? parseJson(value) : undefined;
  if (!isJsonObject(entry) || entry.key !== key || entry.scope !== scope) return undefined;
  const { accessToken, issuedAt, lifetimeS } = entry;
  if (!isAccessTokenText(accessToken) || typeof issuedAt !== 'number' || !Number.isInteger(lifetimeS))
    return undefined;
  const seconds = lifetimeS as number;
  if (seconds <= 0 || seconds > LONGEST_LIFETIME_S || !(issuedAt <= now + CLOCK_TOLERANCE_MS))
    return undefined;
  return { accessToken, tokenType: 'bearer', scope, expiresIn: seconds, ageMs: Math.max(0, now - issuedAt) };
}
