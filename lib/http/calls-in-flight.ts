import { ServiceConnectionError } from '../errors/index.js';
import { allowListeners } from '../exchange/call-limits.js';

/** Counts the calls in flight. A shutdown waits for them, and ends those that take too long. */
export class CallsInFlight {
  readonly #end = new AbortController();
  #running = 0;
  #isRefusing = false;
  #onIdle?: () => void;

  constructor() {
    allowListeners(this.closed);
  }

  /** Aborted when the shutdown's time is over. The calls in flight then reject with its reason. */
  get closed(): AbortSignal {
    return this.#end.signal;
  }

  /** Throws once no new calls are taken. */
  admit(): void {
    if (this.#isRefusing) throw shuttingDown();
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

  /** Takes no new calls. Resolves when none is in flight, or at {@link close}. */
  async drain(): Promise<void> {
    this.#isRefusing = true;
    if (this.#running === 0 || this.closed.aborted) return;
    await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  /**
   * Ends the calls that wait for a token or a retry: they reject with the reason of {@link closed}. Those on a connection
   * end when the caller of this method closes it.
   * @returns how many were in flight
   */
  close(): number {
    this.#isRefusing = true;
    if (this.closed.aborted) return 0;
    this.#end.abort(shuttingDown());
    this.#onIdle?.();
    return this.#running;
  }
}

function shuttingDown(): ServiceConnectionError {
  return new ServiceConnectionError({ kind: 'closed', message: 'ServiceModule is shutting down.' });
}
