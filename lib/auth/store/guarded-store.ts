import { type Clock } from '../../time/clock.js';
import { type TokenStore } from '../../config/token-cache.options.js';
import { backOff } from '../../time/back-off.js';
import { type StoreObserver, StoreTimeout, type StoreUse } from './store-observer.js';

/** Milliseconds for one call, by default. */
const CALL_MS = 250;
/** Milliseconds that the first requests wait for a store to open. */
const OPEN_MS = 1_000;
const CLOSE_MS = 1_000;
/** A time limit passes in slices, so that a pause of our own event loop counts as one of them. */
const SLICE_MS = 50;
/** Read to try a store that did not open: no other key has failed then. */
const PROBE_KEY = 'token:probe';
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

export const UNAVAILABLE = Symbol('unavailable');

/** Gives a lock back. */
export type Release = () => Promise<void>;

/**
 * A host's store, made safe: no method rejects, each ends in time, and a store that does not answer is left alone. It is
 * tried again after 1 s, doubling to 30 s.
 */
export class GuardedStore {
  readonly #store: TokenStore;
  readonly #clock: Clock;
  readonly #observer: StoreObserver;
  readonly #limitMs: number;
  #opened: Promise<void> | undefined;
  #isClosed = false;
  #works = true;
  #worksSince = -Infinity;
  /** The key of the call that failed. Of a store with several servers, others may answer. */
  #failedKey = PROBE_KEY;
  /** Pauses in a row: none in between in which it worked for 30 s. */
  #pauses = 0;
  #cancelTry: (() => void) | undefined;

  constructor(store: TokenStore, clock: Clock, observer: StoreObserver) {
    this.#store = store;
    this.#clock = clock;
    this.#observer = observer;
    this.#limitMs = store.timeout !== undefined && store.timeout > 0 ? store.timeout : CALL_MS;
  }

  /** False while it does not answer, and after {@link close}. */
  get works(): boolean {
    return this.#works;
  }

  /** Begins to open the store, once. */
  open(): void {
    this.#opened ??= this.#open();
  }

  /** To be called once, when nothing is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#works = false;
    this.#cancelTry?.();
    if (!this.#opened) return;
    await this.#answer(CLOSE_MS, async () => this.#store.close?.()).catch(() => undefined);
  }

  async get(key: string): Promise<string | undefined | typeof UNAVAILABLE> {
    return this.#call('reads', key, () => this.#store.get(key));
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#call('writes', key, () => this.#store.set(key, value, ttlMs));
  }

  async delete(key: string, ifValue: string): Promise<void> {
    await this.#call('writes', key, () => this.#store.delete(key, ifValue));
  }

  /** Returns a function that releases the lock; `none`: go on without a lock. */
  async lock(key: string, ttlMs: number): Promise<Release | 'taken' | 'none'> {
    if (!this.#store.lock) return 'none';
    let isLate = false;
    const release = await this.#call('writes', key, async () => {
      const got = await this.#store.lock?.(key, ttlMs);
      if (isLate) void this.#release(key, got);
      return got;
    });
    isLate = true;
    if (release === UNAVAILABLE) return 'none';
    return typeof release === 'function' ? () => this.#release(key, release) : 'taken';
  }

  /** Tried even if the store does not work: others would wait for this lock, and nobody waits for the answer. */
  async #release(key: string, release: Release | undefined): Promise<void> {
    await this.#ask('writes', key, async () => release?.());
  }

  async #open(): Promise<void> {
    if (!this.#store.open) return;
    const opened = this.#answer(OPEN_MS, async () => this.#store.open?.());
    await opened.catch((error: unknown) => this.#failed('reads', PROBE_KEY, error));
  }

  async #call<T>(use: StoreUse, key: string, work: () => Promise<T>): Promise<T | typeof UNAVAILABLE> {
    this.open();
    await this.#opened;
    return this.#works ? this.#ask(use, key, work) : UNAVAILABLE;
  }

  async #ask<T>(use: StoreUse, key: string, work: () => Promise<T>): Promise<T | typeof UNAVAILABLE> {
    try {
      const answer = await this.#answer(this.#limitMs, work);
      // If not, another server of the store answered than the one that failed.
      if (this.#works) this.#observer.worked(use);
      return answer;
    } catch (error) {
      // A store that does not answer a write in time would not answer a read either.
      this.#failed(error instanceof StoreTimeout ? 'reads' : use, key, error);
      return UNAVAILABLE;
    }
  }

  async #answer<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
    let cancel = (): void => undefined;
    const tooLate = new Promise<never>((_, reject) => {
      const wait = (leftMs: number): void => {
        if (leftMs <= 0) reject(new StoreTimeout());
        else cancel = this.#clock.schedule(() => wait(leftMs - SLICE_MS), Math.min(SLICE_MS, leftMs));
      };
      wait(timeoutMs);
    });
    // An async function, so that a synchronous throw becomes a rejection too.
    return Promise.race([(async () => work())(), tooLate]).finally(() => cancel());
  }

  /** A store that is full or read-only refuses writes, and is still worth reading. */
  #failed(use: StoreUse, key: string, error: unknown): void {
    this.#observer.failed(use, error);
    if (use !== 'reads' || !this.#works) return;
    this.#works = false;
    this.#failedKey = key;
    // A store that works when it is tried, and then fails again, is left alone for longer each time.
    if (this.#clock.monotonic() - this.#worksSince > MAX_PAUSE_MS) this.#pauses = 0;
    this.#planTry();
  }

  /** Its timer does not keep the process alive. */
  #planTry(): void {
    const pauseMs = backOff(this.#pauses, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    this.#pauses += 1;
    this.#cancelTry = this.#clock.watch(() => void this.#try(), pauseMs);
  }

  async #try(): Promise<void> {
    const answer = await this.#ask('reads', this.#failedKey, () => this.#store.get(this.#failedKey));
    if (this.#isClosed) return;
    if (answer === UNAVAILABLE) return this.#planTry();
    this.#works = true;
    this.#observer.worked('reads');
    this.#worksSince = this.#clock.monotonic();
  }
}
