import { type TokenStore } from '../../config/token-cache.options.js';
import { type Clock } from '../../time/clock.js';
import { within } from '../../time/timers.js';
import { type TokenIo } from '../access-token.js';

/** Milliseconds for one call, by default. */
const CALL_MS = 250;
/** Milliseconds for which a store that failed is left alone: most are back soon. */
const AWAY_MS = 1_000;
/** A timer that is later than this was held up. */
const LATE_MS = 25;
const QUIET_MS = 60_000;

/** Gives a lock back. */
export type Release = () => Promise<void>;

class StoreTimeout extends Error {}

/**
 * A host's store, made safe: no method rejects, each ends in time, and a store that failed is left alone for 1 s.
 * Its troubles are in the log, a warning a minute.
 */
export class GuardedStore {
  readonly #store: TokenStore;
  readonly #clock: Clock;
  readonly #log: TokenIo['log'];
  readonly #limitMs: number;
  #awayUntil = -Infinity;
  #warnedAt = -Infinity;
  #hasWarned = false;

  constructor(store: TokenStore, { clock, log }: Pick<TokenIo, 'clock' | 'log'>) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#limitMs = store.timeout !== undefined && store.timeout > 0 ? store.timeout : CALL_MS;
  }

  /** False while it is left alone. */
  get works(): boolean {
    return this.#clock.monotonic() >= this.#awayUntil;
  }

  get(key: string): Promise<string | undefined> {
    return this.#ask(() => this.#store.get(key));
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#ask(() => this.#store.set(key, value, ttlMs));
  }

  async delete(key: string, ifValue: string): Promise<void> {
    await this.#ask(() => this.#store.delete(key, ifValue));
  }

  /** `none`: it has no locks, or is not asked now. */
  async lock(key: string, ttlMs: number): Promise<Release | 'taken' | 'none'> {
    const endsAt = this.#clock.monotonic() + ttlMs;
    if (!this.#store.lock) return 'none';
    const release = await this.#ask(async () => (await this.#store.lock?.(key, ttlMs)) ?? ('taken' as const));
    if (typeof release !== 'function') return release === undefined ? 'none' : 'taken';
    return async () => {
      // After its time it may be the lock of another process.
      if (this.#clock.monotonic() < endsAt) await this.#ask(release);
    };
  }

  /** @returns undefined if there is no answer */
  async #ask<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (!this.works) return undefined;
    const clock = this.#clock;
    const begun = clock.monotonic();
    // An async function, so that a synchronous throw becomes a rejection too.
    const answering = (async () => work())();
    const limit = { clock, timeoutMs: this.#limitMs, expired: () => new StoreTimeout() };
    try {
      const answer = await within(limit, () => answering).catch((error: unknown) => {
        // A timer that is late says that this process stood still, as at its start: the command may not have left yet.
        const isLate = clock.monotonic() - begun > this.#limitMs + LATE_MS;
        if (error instanceof StoreTimeout && isLate) return within(limit, () => answering);
        throw error;
      });
      if (this.works) this.#worked();
      return answer;
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  #failed(error: unknown): void {
    const now = this.#clock.monotonic();
    this.#awayUntil = now + AWAY_MS;
    if (now - this.#warnedAt < QUIET_MS) return;
    this.#warnedAt = now;
    this.#hasWarned = true;
    this.#log.warn(
      `The token store does not work (${reasonOf(error)}): this process works with its own tokens until it answers.`,
    );
  }

  #worked(): void {
    if (!this.#hasWarned) return;
    this.#hasWarned = false;
    this.#log.log('The token store works again.');
  }
}

/** One word that shows nothing of a user, a key or a value: a code, Redis's own first word, or the name of the class. */
function reasonOf(error: unknown): string {
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
