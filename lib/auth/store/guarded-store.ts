import { type TokenStore } from '../../config/options.js';
import { type Clock, within } from '../../time/time.js';
import { type TokenIo } from '../access-token.js';

/** Default time limit of one call of the store, in milliseconds. */
const CALL_MS = 250;
/** A store that failed is not called for this time, in milliseconds. */
const PAUSE_MS = 1_000;
/** If a timer fires more than this time too late, the event loop was blocked. Milliseconds. */
const LATE_MS = 25;
/** At most one warning in this time, in milliseconds. */
const WARNING_INTERVAL_MS = 60_000;

/** Releases a lock. */
export type Release = () => Promise<void>;

class StoreTimeout extends Error {}

/**
 * Wraps the host application's store, so that a store that fails cannot delay calls for long. No method rejects, each has a time
 * limit, and a store that failed is not called for 1 s. Failures are logged, at most once a minute.
 */
export class GuardedStore {
  readonly #store: TokenStore;
  readonly #clock: Clock;
  readonly #log: TokenIo['log'];
  readonly #limitMs: number;
  #pausedUntil = -Infinity;
  #warnedAt = -Infinity;
  #hasWarned = false;

  constructor(store: TokenStore, { clock, log }: Pick<TokenIo, 'clock' | 'log'>) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#limitMs = store.timeout !== undefined && store.timeout > 0 ? store.timeout : CALL_MS;
  }

  /** False while the store is not called because it has failed. */
  get isAvailable(): boolean {
    return this.#clock.monotonic() >= this.#pausedUntil;
  }

  get(key: string): Promise<string | undefined> {
    return this.#callStore(() => this.#store.get(key));
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#callStore(() => this.#store.set(key, value, ttlMs));
  }

  async delete(key: string, ifValue: string): Promise<void> {
    await this.#callStore(() => this.#store.delete(key, ifValue));
  }

  /** Tries to acquire a lock. `held`: another process holds the lock. `none`: the store has no locks, or has failed. */
  async lock(key: string, ttlMs: number): Promise<Release | 'held' | 'none'> {
    const endsAt = this.#clock.monotonic() + ttlMs;
    if (!this.#store.lock) return 'none';
    const release = await this.#callStore(
      async () => (await this.#store.lock?.(key, ttlMs)) ?? ('held' as const),
    );
    if (typeof release !== 'function') return release === undefined ? 'none' : 'held';
    return async () => {
      // After its TTL, the lock may belong to another process.
      if (this.#clock.monotonic() < endsAt) await this.#callStore(release);
    };
  }

  /** @returns undefined if the store has failed or does not respond in time */
  async #callStore<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (!this.isAvailable) return undefined;
    const clock = this.#clock;
    const begun = clock.monotonic();
    // An async function, so that a synchronous throw becomes a rejection too.
    const pending = (async () => work())();
    const limit = { clock, timeoutMs: this.#limitMs, expired: () => new StoreTimeout() };
    try {
      const result = await within(limit, () => pending).catch((error: unknown) => {
        // If the timer fires late, the event loop was blocked, and the command may not have been sent yet. Wait once more.
        const isLate = clock.monotonic() - begun > this.#limitMs + LATE_MS;
        if (error instanceof StoreTimeout && isLate) return within(limit, () => pending);
        throw error;
      });
      if (this.isAvailable) this.#onSuccess();
      return result;
    } catch (error) {
      this.#onFailure(error);
      return undefined;
    }
  }

  #onFailure(error: unknown): void {
    const now = this.#clock.monotonic();
    this.#pausedUntil = now + PAUSE_MS;
    if (now - this.#warnedAt < WARNING_INTERVAL_MS) return;
    this.#warnedAt = now;
    this.#hasWarned = true;
    this.#log.warn(
      `The token store has failed (${shortReason(error)}). Until it works again, this process requests tokens of its own.`,
    );
  }

  #onSuccess(): void {
    if (!this.#hasWarned) return;
    this.#hasWarned = false;
    this.#log.log('The token store works again.');
  }
}

/**
 * Describes an error in one word that contains no user, key or value: its code, the first word of a Redis error, or the name of
 * its class.
 */
function shortReason(error: unknown): string {
  if (error instanceof StoreTimeout) return 'timeout';
  if (!(error instanceof Error)) return 'error';
  const { code, message, constructor } = error as NodeJS.ErrnoException;
  const [known] = [
    /^[A-Z][A-Z\d_]{2,40}$/.exec(code ?? ''),
    /^[A-Z]{3,20}(?= )/.exec(message),
    /^[A-Z]\w{2,40}Error$/.exec(constructor.name),
  ].filter((found) => found !== null);
  return known?.[0] ?? 'error';
}
