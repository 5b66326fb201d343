import { copyError, ServiceConnectionError } from '../errors/index.js';
import { allowListeners } from './call-limits.js';
import { CallCancelled } from './exchange.types.js';
import { setImmediate } from '../time/clock.js';

/** Counts the calls in flight: a shutdown waits for them, and ends those that take too long. */
export class CallsInFlight {
  /** Called once, before the first call. */
  onFirst?: () => void;
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

  /** Throws if no new calls are accepted any more. */
  admit(): void {
    if (this.#isRefusing) throw ServiceConnectionError.closed();
  }

  /** Counts work until it ends. Throws as {@link enter}. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.enter();
    try {
      return await work();
    } catch (error) {
      throw this.ending(error);
    } finally {
      this.leave();
    }
  }

  /** Counts a call until {@link leave}. Throws once the shutdown's time is over. */
  enter(): void {
    // Not the signal's reason: each caller gets its own error.
    if (this.closed.aborted) throw ServiceConnectionError.closed();
    this.onFirst?.();
    this.onFirst = undefined;
    this.#running += 1;
  }

  leave(): void {
    this.#running -= 1;
    this.#tellIfIdle();
  }

  /** The error that a call rejects with if it failed with this one. */
  ending(error: unknown): unknown {
    if (error instanceof CallCancelled) {
      return new ServiceConnectionError({ kind: 'closed', message: 'The call was cancelled.' });
    }
    // Shared by all calls that a shutdown ends: axios and hosts may add frames or fields to each.
    return error === this.closed.reason ? copyError(error as Error) : error;
  }

  /** Accepts no new calls. Resolves when no call is in flight, or at {@link close}. */
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
    const count = this.#running;
    this.#end.abort(ServiceConnectionError.closed());
    setImmediate(() => this.#onIdle?.());
    return count;
  }

  /** Not at once: a call that has just got its token is about to be sent, and a rejected caller has yet to hear of it. */
  #tellIfIdle(): void {
    if (this.#onIdle) setImmediate(() => this.#running === 0 && this.#onIdle?.());
  }
}
