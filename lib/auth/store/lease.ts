import { type Clock } from '../../time/clock.js';
import { type TokenIo, type TokenRequestContext } from '../access-token.js';
import { type GuardedStore, type Release } from './guarded-store.js';
import { type StoredToken } from './stored-token.js';

// Parts of the time that a request has, usually 10 s.
/** How long the others wait for a sign: each process draws its own time between these. */
const PATIENCE = { min: 0.25, max: 0.4 };
/** How long the holder gives signs. Then one more process asks, in case only the holder gets no answer. */
const SIGNING = 0.3;
/** With less time left, a process does not begin to ask. */
const LEAST_LEFT = 0.3;

/**
 * The right to ask the endpoint, if several processes want the same token. The first one takes the lock, and gives signs
 * while it asks. A lock without signs does not count: its holder is gone, or never was there. The next process then gives
 * a sign first, so that the others wait again. Signs cannot be forged, and old ones do not count.
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
   * Takes the lease if it can. Without a store, it always can. If no caller waits, there is time: a store that does not work
   * may come back, and an endpoint that has just failed, as a sign in the store shows, may recover.
   * @returns whether this process has the lease now
   */
  async take(): Promise<boolean> {
    const { isAwaited, timeoutMs } = this.#context;
    if (!this.#store.works) {
      // In that time it is tried twice.
      if (!isAwaited() && this.#since(this.#begun) < timeoutMs * PATIENCE.max) return false;
      this.#tookAt = this.#clock.monotonic();
      return true;
    }
    if (this.#since(this.#begun) > timeoutMs * (1 - LEAST_LEFT)) return false;
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

  /** To be called again and again by the holder, and once if its request has failed. */
  async sign(): Promise<void> {
    const { timeoutMs } = this.#context;
    if (this.#since(this.#tookAt) >= timeoutMs * SIGNING) return;
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
