import { type Clock } from '../../../lib/config/clock.js';

interface Timer {
  at: number;
  callback: () => void;
}

/** Time that moves only when told to. */
export class ManualClock implements Clock {
  #now: number;
  #elapsed = 0;
  readonly #timers = new Set<Timer>();

  constructor(start = Date.now()) {
    this.#now = start;
  }

  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  schedule(callback: () => void, delayMs: number): () => void {
    const timer = { at: this.#elapsed + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves on, firing what is due in its order; real file reads in between get their time. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      const before = this.#timers.size;
      this.#timers.delete(due);
      this.#move(Math.max(0, due.at - this.#elapsed));
      due.callback();
      await this.#settle(before);
    }
    this.#move(end - this.#elapsed);
  }

  #move(ms: number): void {
    this.#elapsed += ms;
    this.#now += ms;
  }

  /** A look at files is over when its next timer is set; what sets none gets a moment. */
  async #settle(timers: number): Promise<void> {
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const end = performance.now() + 1_000;
    while (this.#timers.size < timers && performance.now() < end) await turn();
    // A `tls` function has a timer of its own while it is asked.
    for (let turns = 0; turns < 10; turns++) await turn();
  }
}
