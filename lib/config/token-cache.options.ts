import { WholeNumber } from './rules.js';

/** The token cache of this process. */
export class ServiceTokenCacheOptions {
  /**
   * The most customer tokens in the cache. The least recently used is evicted. Default 10,000.
   * SERVICE_TOKEN_CACHE_MAX_ENTRIES
   */
  @WholeNumber('TOKEN_CACHE_MAX_ENTRIES', 1, 10_000_000, 'entries')
  maxEntries?: number | undefined;
}

/** The most characters of a value in a {@link TokenStore}. The longest token that is accepted takes about 22,000. */
export const MAX_ENTRY_LENGTH = 65_536;

/**
 * Shares tokens between processes. If a method fails or is slow, the process uses only its own tokens for a second.
 *
 * Keys are hashes, and values are encrypted. The keys for both are derived from the client secret.
 */
export interface TokenStore {
  /** Milliseconds that a method may take. Default 250. */
  readonly timeout?: number | undefined;
  /** A value longer than 65,536 characters was not written by this module, and need not be returned. */
  get(key: string): Promise<string | undefined>;
  /** The entry must expire after `ttlMs` milliseconds. */
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** With `ifValue`, deletes the entry only if it still has that value. The comparison and the deletion must be atomic. */
  delete(key: string, ifValue?: string): Promise<void>;
  /**
   * Acquires a lock, which must expire after `ttlMs` milliseconds. Resolves with a function that releases it, or with
   * undefined if another process holds it. The function must never release a lock that has expired, because another process
   * may hold it by then.
   */
  lock?(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;
  /** Called at start-up. Returns the faults of the store's own settings, without secrets. Must not connect. */
  check?(): readonly string[] | Promise<readonly string[]>;
}
