import { type Clock } from '../config/clock.js';

export interface TimeLimit {
  clock: Clock;
  timeoutMs: number;
  /** What it rejects with at the deadline. */
  expired: () => Error;
  /** Rejects with its reason. */
  signal?: AbortSignal;
}

/** Runs `work` against a deadline: at its end (or the signal's) it rejects at once and tells the work to stop. */
export async function within<T>(limit: TimeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { clock, timeoutMs, expired, signal } = limit;
  signal?.throwIfAborted();
  return new Promise<T>((resolve, reject) => {
    const controller = new AbortController();
    const end = (settle: () => void): void => {
      cancel();
      signal?.removeEventListener('abort', onAbort);
      settle();
    };
    const stop = (reason: Error): void => {
      controller.abort(reason);
      end(() => reject(reason));
    };
    const onAbort = (): void => stop(signal?.reason as Error);
    const cancel = clock.schedule(() => stop(expired()), timeoutMs);
    signal?.addEventListener('abort', onAbort, { once: true });
    // In a function of its own, so that what throws at once ends up here too.
    (async () => work(controller.signal))().then(
      (value) => end(() => resolve(value)),
      (error: Error) => end(() => reject(error)),
    );
  });
}

/** Rejects with the signal's reason when that comes first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = clock.schedule(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
