import { type Clock } from '../config/clock.js';

const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 20_000;

/** `baseMs`, doubled with each try and at most `capMs`. `tries` counts from 0. */
export function backOff(tries: number, baseMs: number, capMs: number): number {
  return Math.min(capMs, baseMs * 2 ** tries);
}

/**
 * The wait before a retry, in milliseconds. Full jitter: anything from nothing to 100 ms * 2^n, at most 20 s.
 * @param retry from 0
 * @param random in [0, 1)
 */
export function retryDelay(retry: number, random: number): number {
  return random * backOff(retry, RETRY_BASE_MS, RETRY_CAP_MS);
}

/**
 * Waits, or rejects with the reason of the signal that is aborted first. (The timers of `node:timers/promises` take one
 * signal, reject with an error of their own, and cannot use a test's clock.) Does not keep the process running.
 */
export function sleep(
  clock: Clock,
  delayMs: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      cancel();
      for (const signal of signals) signal?.removeEventListener('abort', onAbort);
      settle();
    };
    const onAbort = (): void => {
      const aborted = signals.find((signal) => signal?.aborted);
      end(() => reject(aborted?.reason as Error));
    };
    const cancel = clock.schedule(() => end(resolve), delayMs);
    for (const signal of signals) signal?.addEventListener('abort', onAbort);
    if (signals.some((signal) => signal?.aborted)) onAbort();
  });
}

export interface TimeLimit {
  clock: Clock;
  timeoutMs: number;
  /** What it rejects with at the deadline. */
  expired: () => Error;
  /** Rejects with its reason. */
  signal?: AbortSignal;
}

/** Runs `work` with a deadline. At the deadline, or when the signal aborts, it rejects at once and aborts the work. */
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
    signal?.addEventListener('abort', onAbort);
    // An async function, so that a synchronous throw becomes a rejection too.
    (async () => work(controller.signal))().then(
      (value) => end(() => resolve(value)),
      (error: Error) => end(() => reject(error)),
    );
  });
}
