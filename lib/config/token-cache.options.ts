import { Option } from './option.js';
import { WholeNumber } from './rules.js';

/** The tokens kept in this process. */
export class ServiceTokenCacheOptions {
  /** Customer tokens to keep. The least recently used goes first. Default 10,000. SERVICE_TOKEN_CACHE_MAX_ENTRIES */
  @Option('TOKEN_CACHE_MAX_ENTRIES', 'integer')
  @WholeNumber(1, 10_000_000, 'entries')
  maxEntries?: number | undefined = 10_000;
}

/**
 * Tokens shared between processes. A method may fail or be slow: the process then uses its own tokens. Values contain
 * tokens, so the store must be as private as the client secret. Keys contain no secret.
 */
export interface TokenStore {
  get(key: string): Promise<string | undefined>;
  /** `ttlMs`: the entry must be deleted after so many milliseconds. */
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** With `ifValue`, deletes the entry only if it still has that value. */
  delete(key: string, ifValue?: string): Promise<void>;
  /** Resolves to a release function; undefined where another process has the lock. The lock ends after `ttlMs`. */
  lock?(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;
}
