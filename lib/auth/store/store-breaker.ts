import { type Clock } from '../../config/clock.js';
import { backOff } from '../../exchange/timing.js';
import { StoreTimeout } from './store-observer.js';

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
const SLICE_MS = 50;

/**
 * Open while a store does not work: nothing waits for it then. After a pause of 1 s, doubling to 30 s, it tries the store
 * by itself. Its timer does not keep the process alive.
 */
export class StoreBreaker {
  readonly #clock: Clock;
  readonly #probe: () => Promise<boolean>;
  /** In a row, since it worked for longer than the longest pause. */
  #failures = 0;
  #closedAt = -Infinity;
  #cancel: (() => void) | undefined;
  #isOpen = false;
  #isStopped = false;

  /** @param probe asks the store for something; whether it answered. Never rejects. */
  constructor(clock: Clock, probe: () => Promise<boolean>) {
    this.#clock = clock;
    this.#probe = probe;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    // A store that answers a probe and then fails again is left alone for longer each time.
    if (this.#clock.monotonic() - this.#closedAt > MAX_PAUSE_MS) this.#failures = 0;
    this.#plan();
  }

  /** Tries no more. */
  stop(): void {
    this.#isStopped = true;
    this.#isOpen = true;
    this.#cancel?.();
  }

  #plan(): void {
    const pauseMs = backOff(this.#failures, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    this.#failures += 1;
    this.#cancel = this.#clock.watch(() => void this.#try(), pauseMs);
  }

  async #try(): Promise<void> {
    const works = await this.#probe();
    if (this.#isStopped) return;
    if (!works) return this.#plan();
    this.#isOpen = false;
    this.#closedAt = this.#clock.monotonic();
  }
}

/**
 * The answer of a store, or StoreTimeout. The time passes in slices of 50 ms, so that a pause of our own event loop
 * counts as one of them: an answer that arrived meanwhile is read between two slices.
 */
export function answerWithin<T>(clock: Clock, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let cancel: () => void = () => undefined;
    const wait = (leftMs: number): void => {
      const sliceMs = Math.min(SLICE_MS, leftMs);
      const next = (): void => {
        if (sliceMs === 0) reject(new StoreTimeout(`There was no answer within ${timeoutMs} ms`));
        else wait(leftMs - sliceMs);
      };
      cancel = clock.schedule(next, sliceMs);
    };
    wait(timeoutMs);
    // An async function, so that a synchronous throw becomes a rejection too.
    (async () => work())()
      .then(resolve, reject)
      .finally(() => cancel());
  });
}
