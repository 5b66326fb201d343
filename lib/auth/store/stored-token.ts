import { isJsonObject, parseJson } from '../../exchange/json.js';
import { MAX_LIFETIME_S, type TokenGrant } from '../access-token.js';
import { expiryMargin } from '../cache/cached-token.js';
import { checkToken, expiryOf } from '../check-token.js';

/** By how much the clocks of two machines may differ, in milliseconds. */
const CLOCK_TOLERANCE_MS = 1_000;

/** An entry of the store, with times of the wall clock. `key` separates the entries of clients. */
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
  return {
    value: JSON.stringify(entry),
    ttlMs: Math.floor(lifetimeS * 1000 - expiryMargin(lifetimeS * 1000)),
  };
}

/**
 * Checks an entry as an answer of the endpoint is checked. Its token lives no longer than the token itself says. Without
 * this, whoever can write to the store could give it another customer's token, or a longer life.
 * @param now the wall clock, in milliseconds
 * @returns undefined where it is corrupt, has ended, is from the future, or is of another client, customer or scope
 */
export function readEntry(value: unknown, key: string, scope: string, now: number): TokenGrant | undefined {
  const entry = typeof value === 'string' ? parseJson(value) : undefined;
  if (!isJsonObject(entry) || entry.key !== key || entry.scope !== scope) return undefined;
  const { accessToken } = checkToken(entry.accessToken, scope);
  const { issuedAt, lifetimeS } = entry;
  if (accessToken === undefined || typeof issuedAt !== 'number' || typeof lifetimeS !== 'number')
    return undefined;
  if (!Number.isInteger(lifetimeS) || lifetimeS > MAX_LIFETIME_S) return undefined;
  if (!(issuedAt <= now + CLOCK_TOLERANCE_MS)) return undefined;
  const ownLifetimeS = ((expiryOf(accessToken) ?? Infinity) - issuedAt) / 1000;
  const seconds = Math.min(lifetimeS, Math.floor(ownLifetimeS));
  const ageMs = Math.max(0, now - issuedAt);
  return seconds * 1000 > ageMs
    ? { accessToken, tokenType: 'bearer', scope, expiresIn: seconds, ageMs }
    : undefined;
}
