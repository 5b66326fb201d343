import { type Log } from '../exchange/io.js';
import { systemClock, type Clock } from '../time/clock.js';
import { Secret } from './secret.js';

/** Milliseconds between two readings: a 403 is an everyday answer. */
const INTERVAL_MS = 10_000;
/** Values that texts must not show: an answer may echo the one before. */
const KEPT = 3;

/** The app token in use. The one of a file or a function is read again when the service refuses it. */
export class AppToken extends Secret {
  /** The newest first. */
  #values: readonly string[];
  readonly #read: (() => Promise<Secret>) | undefined;
  readonly #clock: Clock;
  #reading: Promise<void> | undefined;
  /** Monotonic milliseconds at which the latest reading began. */
  #readAt = -Infinity;

  /** @param read rejects with an error whose message may be logged; absent for a value that cannot change */
  constructor(value: Secret, read?: () => Promise<Secret>, clock: Clock = systemClock) {
    super(value.reveal());
    this.#values = [value.reveal()];
    this.#read = read;
    this.#clock = clock;
  }

  /** The newest. */
  override reveal(): string {
    return this.#values[0];
  }

  /** Each that was in use lately, the newest first. */
  revealAll(): readonly string[] {
    return this.#values;
  }

  /** Reads it again, once in 10 s for all callers. Does not reject: if it cannot be read, it stays. */
  async readAgain(log: Pick<Log, 'log' | 'warn'>): Promise<void> {
    const now = this.#clock.monotonic();
    if (!this.#reading && this.#read && now - this.#readAt >= INTERVAL_MS) {
      this.#readAt = now;
      this.#reading = this.#readWith(this.#read, log).finally(() => (this.#reading = undefined));
    }
    await this.#reading;
  }

  async #readWith(read: () => Promise<Secret>, log: Pick<Log, 'log' | 'warn'>): Promise<void> {
    try {
      const value = (await read()).reveal();
      if (value === this.reveal()) return;
      this.#values = [value, ...this.#values].slice(0, KEPT);
      log.log('The app token was refused and read again: another one is in use now.');
    } catch (error) {
      log.warn(`The app token was refused, and reading it again failed: ${(error as Error).message}`);
    }
  }
}
