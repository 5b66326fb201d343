import { ServiceConnectionError } from '../errors/index.js';
import { allowListeners } from '../exchange/call-limits.js';

/** Knows how many calls are under way, so that a shutdown can wait for them, and ends them. */
export class CallsInFlight {
  readonly #end = new AbortController();
  readonly #closed = new ServiceConnectionError({
    kind: 'closed',
    message: 'ServiceModule is shutting down.',
  });
  #running = 0;
  #isRefusing = false;
  #onIdle?: () => void;

  constructor() {
    allowListeners(this.closed);
  }

  /** Aborted when the time of the calls under way is over; its reason is what they reject with. */
  get closed(): AbortSignal {
    return this.#end.signal;
  }

  /** Throws once no new calls are taken. */
  admit(): void {
    if (this.#isRefusing) throw this.#closed;
  }

  /** Throws once the shutdown's time is over. */
  begin(): void {
    this.closed.throwIfAborted();
    this.#running += 1;
  }

  end(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#onIdle?.();
  }

  /** Takes no new calls. Resolves when none is under way, or at {@link close}. */
  async drain(): Promise<void> {
    this.#isRefusing = true;
    if (this.#running === 0 || this.closed.aborted) return;
    await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  /**
   * Ends calls: those that wait reject with the reason of {@link closed}, those on a connection when it is cut, which
   * is the caller's to do.
   * @returns how many were under way
   */
  close(): number {
    this.#isRefusing = true;
    if (this.closed.aborted) return 0;
    this.#end.abort(this.#closed);
    this.#onIdle?.();
    return this.#running;
  }
}
