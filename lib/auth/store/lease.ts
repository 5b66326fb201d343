import { type Clock } from '../../time/clock.js';
import { type TokenIo, type TokenRequestContext } from '../access-token.js';
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
 * The right to ask, where several processes look for the same token. The first one has the lock; while it asks, it gives
 * signs. A lock without signs counts for nothing: its holder is gone, or there never was one. Who goes on then gives a
 * sign first, and the others wait again. Signs cannot be forged, and an old one is none.
 */
export class Lease {
  readonly #store: GuardedStore;
  readonly #entry: StoredToken;
  readonly #context: TokenRequestContext;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #begun: number;
  #signAt: number;
  #tookAt = -Infinity;
  #release: Release | undefined;

  constructor(
    store: GuardedStore,
    entry: StoredToken,
    context: TokenRequestContext,
    { clock, random }: Pick<TokenIo, 'clock' | 'random'>,
  ) {
    this.#store = store;
    this.#entry = entry;
    this.#context = context;
    this.#clock = clock;
    this.#patienceMs = context.timeoutMs * (PATIENCE.min + random() * (PATIENCE.max - PATIENCE.min));
    this.#begun = this.#signAt = clock.monotonic();
  }

  /**
   * Without a store it is ours. If no caller waits, there is time: for a store that does not work to come back, and for an
   * endpoint that failed a moment ago, of which its sign is left.
   * @returns whether it is ours now
   */
  async take(): Promise<boolean> {
    const { isAwaited, timeoutMs } = this.#context;
    if (!this.#store.works) {
      // Until then it has been tried twice.
      if (!isAwaited() && this.#since(this.#begun) < timeoutMs * PATIENCE.max) return false;
      this.#tookAt = this.#clock.monotonic();
      return true;
    }
    if (this.#since(this.#begun) > timeoutMs * (1 - LEAST)) return false;
    const lock = await this.#store.lock(this.#entry.lockKey, timeoutMs);
    if (typeof lock === 'function') {
      if (!isAwaited() && (await this.#signAgeMs()) < this.#patienceMs) {
        await lock();
        return false;
      }
      this.#release = lock;
    } else if (lock === 'taken' && !(await this.#isGone())) return false;
    this.#tookAt = this.#clock.monotonic();
    if (lock === 'taken') await this.sign();
    return true;
  }

  /** To be called again and again while we have it, and when our request has failed. */
  async sign(): Promise<void> {
    const { timeoutMs } = this.#context;
    if (this.#since(this.#tookAt) >= timeoutMs * SIGNS) return;
    const sign = this.#entry.writeSign(this.#clock.now());
    await this.#store.set(this.#entry.signKey, sign, timeoutMs * PATIENCE.max);
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
