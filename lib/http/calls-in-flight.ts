import { ServiceConnectionError } from '../errors/index.js';
import { allowListeners } from '../exchange/allow-listeners.js';

/** Knows how many calls are under way, so that a shutdown can wait for them. */
export class CallsInFlight {
  private running = 0;
  private closing?: ServiceConnectionError;
  private onIdle?: () => void;
  private readonly controller = new AbortController();

  constructor() {
    allowListeners(this.controller.signal);
  }

  /** Aborted once the time of the calls under way is over; its reason is what they reject with. */
  get closed(): AbortSignal {
    return this.controller.signal;
  }

  /** Throws once the module is shutting down: for calls that come anew. */
  admit(): void {
    if (this.closing) throw this.closing;
  }

  /** Throws once the shutdown's time is over. */
  begin(): void {
    this.closed.throwIfAborted();
    this.running += 1;
  }

  end(): void {
    this.running -= 1;
    if (this.running === 0) this.onIdle?.();
  }

  /**
   * Refuses new calls and gives those under way `graceMs`; what is left then ends with its connection, which is the
   * caller's to close.
   */
  async close(graceMs: number): Promise<void> {
    this.closing ??= new ServiceConnectionError({
      kind: 'closed',
      message: 'ServiceModule is shutting down.',
    });
    if (this.running > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.controller.abort(this.closing);
  }
}
