import { copyError, ServiceConnectionError } from '../errors/index.js';
import { CallCancelled } from '../exchange/fault.js';
import { allowManyListeners, setImmediate } from '../time/time.js';

/** Counts the calls in flight, so that a shutdown can wait for them, and end those that take too long. */
export class CallsInFlight {
  /** Called once, before the first call. */
  onFirstCall?: () => void;
  readonly #shutdown = new AbortController();
  #running = 0;
  #isRefusing = false;
  #onIdle?: () => void;

  constructor() {
    allowManyListeners(this.closed);
  }

  /** Aborts when the grace period of the shutdown is over. The calls in flight then reject with the reason of this signal. */
  get closed(): AbortSignal {
    return this.#shutdown.signal;
  }

  /** Throws if the shutdown has begun, so that no new calls are accepted. */
  throwIfDraining(): void {
    if (this.#isRefusing) throw ServiceConnectionError.closed();
  }

  /** Runs `work` and counts it as a call until it settles. Throws as {@link enter}. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.enter();
    try {
      return await work();
    } catch (error) {
      throw this.toCallerError(error);
    } finally {
      this.leave();
    }
  }

  /** Counts a call until {@link leave}. Throws if the grace period of the shutdown is over. */
  enter(): void {
    // An error of its own for each caller, not the shared reason of the signal.
    if (this.closed.aborted) throw ServiceConnectionError.closed();
    this.onFirstCall?.();
    this.onFirstCall = undefined;
    this.#running += 1;
  }

  leave(): void {
    this.#running -= 1;
    // Wait a turn of the event loop: a call that has just got its token is about to be sent, and rejected callers run first.
    if (this.#onIdle) setImmediate(() => this.#running === 0 && this.#onIdle?.());
  }

  /** Turns the error of a call into the one that its caller gets. */
  toCallerError(error: unknown): unknown {
    if (error instanceof CallCancelled) {
      return new ServiceConnectionError({ kind: 'closed', message: 'The call was cancelled.' });
    }
    // All calls that the shutdown ends share this reason. Axios and host applications may add stack frames or fields to an error.
    return error === this.closed.reason ? copyError(error as Error) : error;
  }

  /** Stops accepting new calls. Resolves when no call is in flight, or when {@link close} is called. */
  async drain(): Promise<void> {
    this.#isRefusing = true;
    if (this.#running === 0 || this.closed.aborted) return;
    await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  /**
   * Ends the calls that wait for a token or for a retry: they reject with the reason of {@link closed}. A call that uses a
   * connection ends when the caller of this method closes that connection.
   * @returns how many were in flight
   */
  close(): number {
    this.#isRefusing = true;
    if (this.closed.aborted) return 0;
    const count = this.#running;
    this.#shutdown.abort(ServiceConnectionError.closed());
    setImmediate(() => this.#onIdle?.());
    return count;
  }
}
