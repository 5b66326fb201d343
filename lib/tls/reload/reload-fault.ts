import { type Clock } from '../../config/clock.js';
import { type ConfigurationFault } from '../../errors/index.js';

/** Receives log lines. None of them contains a key, a passphrase or PEM text. */
export type Log = (level: 'log' | 'warn' | 'error', message: string) => void;

/** Why the content that was read last is not in use. Logged once for the same content, and kept for health checks. */
export class ReloadFault {
  readonly #clock: Clock;
  readonly #log: Log;
  #current?: { at: Date; faults: ConfigurationFault[] };
  #digest?: string;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  get current(): { at: Date; faults: ConfigurationFault[] } | undefined {
    return this.#current;
  }

  /** @param digest of the content with these faults */
  note(digest: string, faults: ConfigurationFault[]): void {
    if (this.#digest !== digest) {
      const list = faults.map(({ option, message }) => `\n  - ${option}: ${message}`).join('');
      this.#log('error', `The new client identity is not usable; the one before stays in use:${list}`);
    }
    this.#current = { at: new Date(this.#clock.now()), faults };
    this.#digest = digest;
  }

  /** The content that was read last is in use. */
  clear(): void {
    this.#current = undefined;
    this.#digest = undefined;
  }
}
