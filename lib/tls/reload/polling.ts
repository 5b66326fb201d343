import { type Clock } from '../../time/clock.js';

const SECOND_MS = 1_000;
/** How many followers look each second. Each looks every 8 s at least, so that a change is in use within 10 s. */
const EACH_TIME = 100;
const MOST_TIMES = 8;

/**
 * One timer for many followers, which look in turn: up to a hundred each second, or an eighth of more than 800. The timer
 * does not keep the process alive.
 */
export class Polling {
  readonly #clock: Clock;
  readonly #periodMs: number;
  /** In the order of their turns. */
  readonly #looks = new Set<() => void>();
  #cancel?: () => void;

  constructor(clock: Clock, periodMs = SECOND_MS) {
    this.#clock = clock;
    this.#periodMs = periodMs;
  }

  /** @param look must not throw. Returns a function that ends this. */
  follow(look: () => void): () => void {
    if (this.#looks.size === 0) this.#plan();
    this.#looks.add(look);
    return () => {
      this.#looks.delete(look);
      if (this.#looks.size === 0) this.#cancel?.();
    };
  }

  #plan(): void {
    this.#cancel = this.#clock.watch(() => this.#lookAll(), this.#periodMs);
  }

  #lookAll(): void {
    this.#plan();
    const times = Math.min(MOST_TIMES, Math.ceil(this.#looks.size / EACH_TIME));
    for (const look of [...this.#looks].slice(0, Math.ceil(this.#looks.size / times))) {
      // Another's look may have ended it.
      if (!this.#looks.delete(look)) continue;
      this.#looks.add(look);
      look();
    }
  }
}
