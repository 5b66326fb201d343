import { type Log } from '../exchange/io.js';
import { systemClock, watching, type Clock } from '../time/clock.js';
import { within } from '../time/timers.js';
import { Secret } from './secret.js';

/** Milliseconds between two readings, and two warnings: a 403 is an everyday answer, and a vault counts its readers. */
const INTERVAL_MS = 10_000;
/** Of a file, which costs nobody anything. */
export const FILE_INTERVAL_MS = 100;
/** Milliseconds for one, also of a file: a mount may hang. */
const READING_MS = 8_000;
/** Values that texts must not show: an answer may echo one that was in use before. */
const KEPT = 4;

/**
 * The app token of all calls. The one of a file or a function is read again when the service refuses a call. What is read
 * may be a file that is half written, or the answer of a vault that lags: it is tried by calls that were refused, and all
 * calls use it only once the service has taken it.
 */
export class AppToken extends Secret {
  #inUse: string;
  /** Read last. */
  #newest: string;
  /** The newest first. */
  #values: readonly string[];
  readonly #read: (() => Promise<Secret>) | undefined;
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #reading: Promise<void> | undefined;
  // Monotonic milliseconds.
  #readAt = -Infinity;
  #repeatedAt = -Infinity;
  #warnedAt = -Infinity;

  /** @param read rejects with an error whose message may be logged; absent for a value that cannot change */
  constructor(
    value: Secret,
    read?: () => Promise<Secret>,
    intervalMs = INTERVAL_MS,
    clock: Clock = systemClock,
  ) {
    super('');
    this.#inUse = this.#newest = value.reveal();
    this.#values = [this.#newest];
    this.#read = read;
    this.#clock = watching(clock);
    this.#intervalMs = intervalMs;
  }

  /** The one in use. */
  override reveal(): string {
    return this.#inUse;
  }

  /** Each that was read lately, the newest first. */
  revealAll(): readonly string[] {
    return this.#values;
  }

  /** One that a call has not tried yet. A new one each time: nothing says when the service begins to take it. */
  toTry(tried: readonly string[]): string | undefined {
    return [this.#inUse, this.#newest].find((value) => !tried.includes(value));
  }

  /** The service took it: from now on all calls use it. */
  accepted(value: string, log: Pick<Log, 'log'>): void {
    if (value !== this.#newest || value === this.#inUse) return;
    this.#inUse = value;
    log.log('The app token has changed: calls use the new one.');
  }

  /**
   * Reads it again: once in 10 s for all callers (a file: 0.1 s), and once more for those who joined a reading that may have
   * begun before the rotation. Does not reject: if it cannot be read, it stays.
   */
  async readAgain(log: Pick<Log, 'warn'>): Promise<void> {
    const underWay = this.#reading;
    const before = this.#newest;
    if (!underWay) return this.#now - this.#readAt >= this.#intervalMs ? this.#begin(log) : undefined;
    await underWay;
    if (this.#newest !== before) return undefined;
    if (this.#reading) return this.#reading;
    if (this.#now - this.#repeatedAt < this.#intervalMs) return undefined;
    this.#repeatedAt = this.#now;
    return this.#begin(log);
  }

  get #now(): number {
    return this.#clock.monotonic();
  }

  async #begin(log: Pick<Log, 'warn'>): Promise<void> {
    const read = this.#read;
    if (!read) return;
    this.#readAt = this.#now;
    this.#reading = this.#take(read, log).finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #take(read: () => Promise<Secret>, log: Pick<Log, 'warn'>): Promise<void> {
    const expired = () => new Error(`there was no answer within ${READING_MS / 1000} s`);
    try {
      const value = await within({ clock: this.#clock, timeoutMs: READING_MS, expired }, () => read());
      this.#newest = value.reveal();
      this.#values = [...new Set([this.#newest, this.#inUse, ...this.#values])].slice(0, KEPT);
    } catch (error) {
      if (this.#now - this.#warnedAt < INTERVAL_MS) return;
      this.#warnedAt = this.#now;
      log.warn(`A call was refused, and reading the app token again failed: ${(error as Error).message}`);
    }
  }
}
