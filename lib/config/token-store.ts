/**
 * Tokens shared between processes. Every method may fail or be slow: the local path goes on without it. Keys hold no
 * secret; values do, so the store has to be as private as the client secret.
 */
export interface TokenStore {
  get(key: string): Promise<string | undefined>;
  /** `ttlMs`: milliseconds after which the entry must be gone. */
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** With `ifValue`, only where the entry still has that value. */
  delete(key: string, ifValue?: string): Promise<void>;
  /** A release function; undefined where another holds the lock. It ends by itself after `ttlMs`. */
  lock?(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;
}
