import { type Clock } from '../../time/clock.js';

// Milliseconds.
const FIRST = 300_000;
const MOST = 3_600_000;

/**
 * Origins on whose old connections a request got no response: something on the way drops idle connections without a word.
 * They are not trusted for 5 minutes, and twice as long each time that the next trial fails.
 */
export class Distrust {
  readonly #clock: Clock;
  readonly #origins = new Map<string, { endsAt: number; nextMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(origin: string): boolean {
    return (this.#origins.get(origin)?.endsAt ?? -Infinity) > this.#clock.monotonic();
  }

  add(origin: string): void {
    if (this.has(origin)) return;
    const ms = this.#origins.get(origin)?.nextMs ?? FIRST;
    this.#origins.set(origin, { endsAt: this.#clock.monotonic() + ms, nextMs: Math.min(2 * ms, MOST) });
  }

  /** A request got its response on an old connection. */
  end(origin: string): void {
    this.#origins.delete(origin);
  }
}
