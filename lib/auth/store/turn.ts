import { type Clock } from '../../config/clock.js';
import { type GuardedStore } from './guarded-store.js';
import { type StoredToken } from './stored-token.js';

// Parts of the time that a request has, 10 s.
/** Without a sign of whoever asks, another process asks after so much: each after a time of its own. */
const PATIENCE = { min: 0.25, max: 0.4 };
/** So long whoever asks gives signs. Then one more asks, as it may be the only one that gets no answer. */
const SIGNS = 0.3;
/** With less than that left, a process does not ask any more. */
const LEAST = 0.3;

/** Ends our turn. */
export type Release = () => Promise<void>;

export interface TurnParts {
  store: GuardedStore;
  entry: StoredToken;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  timeoutMs: number;
}

/**
 * Decides which process asks, where several look for the same token. The first one has the lock; while it asks, it gives
 * signs. A lock without signs counts for nothing: its holder is gone, or there never was one. Who goes on then gives a
 * sign first, and the others wait again. Signs cannot be forged, and an old one is none.
 */
export class Turn {
  readonly #parts: TurnParts;
  readonly #begun: number;
  readonly #patienceMs: number;
  #signAt: number;
  #tookAt = -Infinity;

  constructor(parts: TurnParts) {
    const { clock, random, timeoutMs } = parts;
    this.#parts = parts;
    this.#begun = this.#signAt = clock.monotonic();
    this.#patienceMs = timeoutMs * (PATIENCE.min + random() * (PATIENCE.max - PATIENCE.min));
  }

  /** @returns undefined while it is the turn of another process */
  async take(): Promise<Release | undefined> {
    const { store, entry, clock, timeoutMs } = this.#parts;
    if (clock.monotonic() - this.#begun > timeoutMs * (1 - LEAST)) return undefined;
    const lock = await store.lock(entry.lockKey, timeoutMs);
    if (lock === 'taken') {
      const ageMs = entry.readSign(await store.get(entry.signKey), clock.now());
      this.#signAt = Math.max(this.#signAt, clock.monotonic() - ageMs);
      if (clock.monotonic() - this.#signAt < this.#patienceMs) return undefined;
      await this.#writeSign();
    }
    this.#tookAt = clock.monotonic();
    return typeof lock === 'function' ? lock : () => Promise.resolve();
  }

  /** To be called again and again while it is our turn. */
  async sign(): Promise<void> {
    const { clock, timeoutMs } = this.#parts;
    if (clock.monotonic() - this.#tookAt < timeoutMs * SIGNS) await this.#writeSign();
  }

  async #writeSign(): Promise<void> {
    const { store, entry, clock, timeoutMs } = this.#parts;
    await store.set(entry.signKey, entry.writeSign(clock.now()), timeoutMs * PATIENCE.max);
  }
}
