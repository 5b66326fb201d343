import { type Clock } from '../../config/clock.js';
import { type TokenStore } from '../../config/token-cache.options.js';
import { answerWithin, StoreBreaker } from './store-breaker.js';
import { type StoreObserver, StoreTimeout, type StoreUse } from './store-observer.js';

/** Milliseconds for one call of a store that names no other limit. */
const CALL_MS = 250;
/** Milliseconds that the first requests wait for a store to open, counted from its beginning. */
const OPEN_MS = 1_000;
const CLOSE_MS = 1_000;
const PROBE_KEY = 'token:probe';

export const UNAVAILABLE = Symbol('unavailable');

/** Ends our turn. */
export type Release = () => Promise<void>;

/**
 * A host's store, in which nothing can go wrong for us: no method rejects, each ends in time, and a store that does not
 * answer is not asked at all until it works again.
 */
export class GuardedStore {
  readonly #store: TokenStore;
  readonly #clock: Clock;
  readonly #observer: StoreObserver;
  readonly #breaker: StoreBreaker;
  readonly #limitMs: number;
  #opened: Promise<void> | undefined;

  constructor(store: TokenStore, clock: Clock, observer: StoreObserver) {
    this.#store = store;
    this.#clock = clock;
    this.#observer = observer;
    this.#limitMs = store.timeout !== undefined && store.timeout > 0 ? store.timeout : CALL_MS;
    const probe = async () => (await this.#ask('reads', () => store.get(PROBE_KEY))) !== UNAVAILABLE;
    this.#breaker = new StoreBreaker(clock, probe);
  }

  /** False while it does not answer. */
  get works(): boolean {
    return !this.#breaker.isOpen;
  }

  /** Begins to open the store, where it has not been opened yet. */
  open(): void {
    this.#opened ??= this.#open();
  }

  /** To be called once, when nothing is under way any more. */
  async close(): Promise<void> {
    this.#breaker.stop();
    if (!this.#opened) return;
    await answerWithin(this.#clock, CLOSE_MS, async () => this.#store.close?.()).catch(() => undefined);
  }

  async get(key: string): Promise<string | undefined | typeof UNAVAILABLE> {
    return this.#call('reads', () => this.#store.get(key));
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#call('writes', () => this.#store.set(key, value, ttlMs));
  }

  async delete(key: string, ifValue: string): Promise<void> {
    await this.#call('writes', () => this.#store.delete(key, ifValue));
  }

  /** A function releases it; `none`: go on without one. */
  async lock(key: string, ttlMs: number): Promise<Release | 'taken' | 'none'> {
    if (!this.#store.lock) return 'none';
    let isLate = false;
    const release = await this.#call('writes', async () => {
      const got = await this.#store.lock?.(key, ttlMs);
      if (isLate) void this.#release(got);
      return got;
    });
    isLate = true;
    if (release === UNAVAILABLE) return 'none';
    return typeof release === 'function' ? () => this.#release(release) : 'taken';
  }

  /** Asked of a store that does not work too: others would wait for this lock, and nobody waits for the answer. */
  async #release(release: Release | undefined): Promise<void> {
    await this.#ask('writes', async () => release?.());
  }

  async #open(): Promise<void> {
    if (!this.#store.open) return;
    const opened = answerWithin(this.#clock, OPEN_MS, async () => this.#store.open?.());
    await opened.catch((error: unknown) => this.#failed('reads', error));
  }

  async #call<T>(use: StoreUse, work: () => Promise<T>): Promise<T | typeof UNAVAILABLE> {
    this.open();
    await this.#opened;
    return this.works ? this.#ask(use, work) : UNAVAILABLE;
  }

  async #ask<T>(use: StoreUse, work: () => Promise<T>): Promise<T | typeof UNAVAILABLE> {
    try {
      const answer = await answerWithin(this.#clock, this.#limitMs, work);
      this.#observer.worked(use);
      return answer;
    } catch (error) {
      this.#failed(error instanceof StoreTimeout ? 'reads' : use, error);
      return UNAVAILABLE;
    }
  }

  /** A store that is full or read-only refuses writes, and is still worth reading. */
  #failed(use: StoreUse, error: unknown): void {
    this.#observer.failed(use, error);
    if (use === 'reads') this.#breaker.open();
  }
}
