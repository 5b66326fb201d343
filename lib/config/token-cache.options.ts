import { WholeNumber } from './rules.js';

/** The tokens kept in this process. */
export class ServiceTokenCacheOptions {
  /** Customer tokens to keep. The least recently used goes first. Default 10,000. SERVICE_TOKEN_CACHE_MAX_ENTRIES */
  @WholeNumber('TOKEN_CACHE_MAX_ENTRIES', 1, 10_000_000, 'entries')
  maxEntries?: number | undefined;
}

/** The most characters of a value in a {@link TokenStore}. The longest token that is accepted makes 22,000. */
export const MAX_ENTRY_LENGTH = 65_536;

/**
 * Tokens shared between processes. A method may fail or be slow: the process then uses its own tokens for a second. Keys are
 * hashes and values are encrypted; the keys for both come from the client secret.
 */
export interface TokenStore {
  /** Milliseconds for one call. Default 250. */
  readonly timeout?: number | undefined;
  /** A value of more than 65,536 characters is not ours, and need not be read. */
  get(key: string): Promise<string | undefined>;
  /** The entry must be deleted after `ttlMs` milliseconds. */
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** With `ifValue`, deletes the entry only if it still has that value, in one step. */
  delete(key: string, ifValue?: string): Promise<void>;
  /**
   * Resolves with a function that gives the lock back; undefined if another process has the lock. It must end after `ttlMs`
   * milliseconds. Only its holder gives a lock back, and never after its time: it may be another's by then.
   */
  lock?(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;
  /** Called at start-up: returns faults of the store's own settings, in words without secrets. Must not connect. */
  check?(): readonly string[] | Promise<readonly string[]>;
}
