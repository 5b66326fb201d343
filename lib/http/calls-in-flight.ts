import { ServiceConnectionError } from '../errors/index.js';

export interface CallInFlight {
  signal: AbortSignal;
  end(): void;
}

/** Knows the calls under way, so that a shutdown can wait for them and then end them. */
export class CallsInFlight {
  private readonly running = new Set<AbortController>();
  private closing?: ServiceConnectionError;
  private onIdle?: () => void;

  /** Follows the caller's own signals. Throws once the module is shutting down. */
  begin(...signals: (AbortSignal | undefined)[]): CallInFlight {
    if (this.closing) throw this.closing;
    const controller = new AbortController();
    const followed = signals
      .filter((signal) => signal !== undefined)
      .map((signal) => follow(signal, controller));
    this.running.add(controller);
    return {
      signal: controller.signal,
      end: () => {
        followed.forEach((stop) => stop());
        this.running.delete(controller);
        if (this.running.size === 0) this.onIdle?.();
      },
    };
  }

  get size(): number {
    return this.running.size;
  }

  /** Refuses new calls, gives those under way `graceMs`, then aborts what is left. */
  async close(graceMs: number): Promise<void> {
    this.closing ??= new ServiceConnectionError({
      kind: 'closed',
      message: 'ServiceModule is shutting down.',
    });
    const closed = this.closing;
    if (this.running.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.running.forEach((controller) => controller.abort(closed));
  }
}

function follow(signal: AbortSignal, controller: AbortController): () => void {
  const abort = (): void => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return () => signal.removeEventListener('abort', abort);
}
