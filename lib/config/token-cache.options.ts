import { Option } from './option.js';
import { WholeNumber } from './rules.js';

/** The tokens kept in this process. */
export class ServiceTokenCacheOptions {
  /** Customer tokens kept, least recently used out first. Default 10,000. SERVICE_TOKEN_CACHE_MAX_ENTRIES */
  @Option('TOKEN_CACHE_MAX_ENTRIES', 'integer')
  @WholeNumber(1, 10_000_000, 'entries')
  maxEntries?: number | undefined = 10_000;
}

/**
 * Tokens shared between processes. Every method may fail or be slow: the process then works with its own tokens. Keys
 * hold no secret; values do, so the store has to be as private as the client secret.
 */
export interface TokenStore {
  get(key: string): Promise<string | undefined>;
  /** `ttlMs`: milliseconds after which the entry must be gone. */
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** With `ifValue`, only where the entry still has that value. */
  delete(key: string, ifValue?: string): Promise<void>;
  /** A release function; undefined where another process holds the lock. The lock ends by itself after `ttlMs`. */
  lock?(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;
}
