import { isPromise } from 'node:util/types';
import { type Clock } from '../time/clock.js';
import { type Log } from '../exchange/io.js';

/** Visible ASCII, as it goes into a header and log lines. */
const USABLE = /^[\x21-\x7e]{1,128}$/;
const WARNING_INTERVAL_MS = 60_000;

/** `http.requestId`: the host's own id for each call, in the header of correlation ids. */
export class RequestIds {
  readonly #make: () => unknown;
  readonly #header: string;
  readonly #log: Pick<Log, 'warn'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #quietUntil = -Infinity;

  /** @param header in lower case */
  constructor(make: () => unknown, header: string, log: Pick<Log, 'warn'>, clock: Pick<Clock, 'monotonic'>) {
    this.#make = make;
    this.#header = header;
    this.#log = log;
    this.#clock = clock;
  }

  /**
   * Adds the id to headers with names in lower case, unless the caller set the header. Without a usable id, the call is
   * still sent, and a warning is logged, once a minute at most. Never throws.
   */
  addTo(headers: Record<string, string>): void {
    if (headers[this.#header] !== undefined) return;
    try {
      const id = this.#make();
      if (typeof id === 'string' && USABLE.test(id)) headers[this.#header] = id;
      else if (isPromise(id)) {
        // Nobody waits for it: its rejection would end the process.
        id.catch(() => undefined);
        this.#warn('returned a promise');
      } else if (id !== undefined) {
        this.#warn('did not return 1 to 128 visible ASCII characters');
      }
    } catch {
      // Its message may hold anything.
      this.#warn('threw an error');
    }
  }

  #warn(what: string): void {
    const now = this.#clock.monotonic();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + WARNING_INTERVAL_MS;
    this.#log.warn(`http.requestId ${what}: calls are sent without a request id.`);
  }
}
