import { type Clock } from '../../config/clock.js';
import { type GuardedStore, type Release } from './guarded-store.js';
import { type StoredToken } from './stored-token.js';

// Of the time that a request has, 10 s:
/** So long the others wait for a sign, each for a time of its own. */
const PATIENCE = { min: 0.25, max: 0.4 };
/** So long whoever asks gives signs. Then one more asks: the first may be the only one that gets no answer. */
const SIGNS = 0.3;
/** With less than that left, a process does not ask any more. */
const LEAST = 0.3;

/**
 * Decides which process asks, where several look for the same token. The first one has the lock; while it asks, it gives
 * signs. A lock without signs counts for nothing: its holder is gone, or there never was one. Who goes on then gives a
 * sign first, and the others wait again. Signs cannot be forged, and an old one is none.
 */
export class Turn {
  readonly #store: GuardedStore;
  readonly #entry: StoredToken;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #patienceMs: number;
  readonly #begun: number;
  #signAt: number;
  #tookAt = -Infinity;
  #release: Release | undefined;

  /** @param random in [0, 1) */
  constructor(store: GuardedStore, entry: StoredToken, clock: Clock, timeoutMs: number, random: number) {
    this.#store = store;
    this.#entry = entry;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#patienceMs = timeoutMs * (PATIENCE.min + random * (PATIENCE.max - PATIENCE.min));
    this.#begun = this.#signAt = clock.monotonic();
  }

  get isOurs(): boolean {
    return this.#tookAt > -Infinity;
  }

  /**
   * Without a store it is ours.
   * @param isAwaited whether a caller waits. If none does, there is time: for a store that does not work to come back, and
   * for an endpoint that failed a moment ago, of which its sign is left.
   * @returns whether it is ours now
   */
  async take(isAwaited: boolean): Promise<boolean> {
    const store = this.#store;
    if (!store.works) {
      // Until then it has been tried twice.
      const isLate = this.#since(this.#begun) >= this.#timeoutMs * PATIENCE.max;
      if (isAwaited || isLate) this.#tookAt = this.#clock.monotonic();
      return this.isOurs;
    }
    if (this.#since(this.#begun) > this.#timeoutMs * (1 - LEAST)) return false;
    const lock = await store.lock(this.#entry.lockKey, this.#timeoutMs);
    if (typeof lock === 'function') {
      if (!isAwaited && (await this.#signAgeMs()) < this.#patienceMs) {
        await lock();
        return false;
      }
      this.#release = lock;
    } else if (lock === 'taken' && !(await this.#isGone())) return false;
    this.#tookAt = this.#clock.monotonic();
    if (lock === 'taken') await this.sign();
    return true;
  }

  /** To be called again and again while it is our turn, and when it has failed. */
  async sign(): Promise<void> {
    if (this.#since(this.#tookAt) >= this.#timeoutMs * SIGNS) return;
    const sign = this.#entry.writeSign(this.#clock.now());
    await this.#store.set(this.#entry.signKey, sign, this.#timeoutMs * PATIENCE.max);
  }

  async end(): Promise<void> {
    await this.#release?.();
  }

  async #isGone(): Promise<boolean> {
    const ageMs = await this.#signAgeMs();
    this.#signAt = Math.max(this.#signAt, this.#clock.monotonic() - ageMs);
    return this.#since(this.#signAt) >= this.#patienceMs;
  }

  async #signAgeMs(): Promise<number> {
    return this.#entry.readSign(await this.#store.get(this.#entry.signKey), this.#clock.now());
  }

  #since(at: number): number {
    return this.#clock.monotonic() - at;
  }
}
