import { type Clock } from '../../config/clock.js';

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/**
 * Open while a store does not work: nothing waits for it then. After a pause of 1 s, doubling to 30 s, it tries the store
 * by itself. Its timer does not keep the process alive.
 */
export class StoreBreaker {
  readonly #clock: Clock;
  readonly #probe: () => Promise<boolean>;
  #pauseMs = 0;
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
    const isCalm = this.#clock.monotonic() - this.#closedAt > MAX_PAUSE_MS;
    this.#pauseMs = isCalm ? FIRST_PAUSE_MS : Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
    this.#plan();
  }

  /** Tries no more. */
  stop(): void {
    this.#isStopped = true;
    this.#isOpen = true;
    this.#cancel?.();
  }

  #plan(): void {
    this.#cancel = this.#clock.watch(() => void this.#try(), this.#pauseMs);
  }

  async #try(): Promise<void> {
    const works = await this.#probe();
    if (this.#isStopped) return;
    if (works) {
      this.#isOpen = false;
      this.#closedAt = this.#clock.monotonic();
    } else {
      this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
      this.#plan();
    }
  }
}
