import { type Clock } from '../../config/clock.js';
import { type ConfigurationFault } from '../../errors/index.js';

/** Receives log lines. None of them contains a key, a passphrase or PEM text. */
export type Log = (level: 'log' | 'warn' | 'error', message: string) => void;

/** A bad pair may become good with no change to it: a certificate of the near future. */
const RETRY_MS = 60_000;

/** Why what was read last is not in use: told once, kept for health, and looked at again after a minute. */
export class ReloadFault {
  readonly #clock: Clock;
  readonly #log: Log;
  #current?: { at: Date; faults: ConfigurationFault[]; digest: string };
  #cancelRetry?: () => void;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  get current(): { at: Date; faults: ConfigurationFault[] } | undefined {
    return this.#current && { at: this.#current.at, faults: this.#current.faults };
  }

  /** @param retry left out where nothing is followed */
  note(digest: string, faults: ConfigurationFault[], retry?: () => void): void {
    if (this.#current?.digest !== digest) {
      const list = faults.map(({ option, message }) => `\n  - ${option}: ${message}`).join('');
      this.#log('error', `The new client identity is not usable; the one before stays in use:${list}`);
    }
    this.#current = { at: new Date(this.#clock.now()), faults, digest };
    this.stop();
    if (retry) this.#cancelRetry = this.#clock.schedule(retry, RETRY_MS);
  }

  /** What was read last is in use. */
  clear(): void {
    this.#current = undefined;
    this.stop();
  }

  stop(): void {
    this.#cancelRetry?.();
  }
}
