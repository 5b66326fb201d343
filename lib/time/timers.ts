import { type Clock } from './clock.js';

type Signals = readonly (AbortSignal | undefined)[];

/**
 * Calls one of the two, once: `onTime` after the delay, or `onAbort` with the reason of a signal that is aborted before.
 * No signal may be aborted yet. Returns a function that ends the wait.
 */
function startTimer(
  clock: Clock,
  delayMs: number,
  signals: Signals,
  onTime: () => void,
  onAbort: (reason: Error) => void,
): () => void {
  const stop = (): void => {
    cancel();
    for (const signal of signals) signal?.removeEventListener('abort', abort);
  };
  const abort = (): void => {
    stop();
    onAbort(signals.find((signal) => signal?.aborted)?.reason as Error);
  };
  const cancel = clock.schedule(() => {
    stop();
    onTime();
  }, delayMs);
  for (const signal of signals) signal?.addEventListener('abort', abort);
  return stop;
}

/**
 * Waits, or rejects with the reason of the signal that is aborted first. (The timers of `node:timers/promises` take one
 * signal, reject with an error of their own, and cannot use a test's clock.)
 */
export async function sleep(clock: Clock, delayMs: number, ...signals: Signals): Promise<void> {
  for (const signal of signals) signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    startTimer(clock, delayMs, signals, resolve, reject);
  });
}

/** Settles like `work`, or rejects with the signal's reason if that is aborted first. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      signal.removeEventListener('abort', abort);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    void work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject);
  });
}

interface TimeLimit {
  clock: Clock;
  timeoutMs: number;
  /** The error at the deadline. */
  expired: () => Error;
  /** Rejects with the reason of the one that is aborted first. */
  signals?: Signals;
}

/** Runs `work` with a deadline. At the deadline, or when a signal aborts, it rejects at once and aborts the work. */
export async function within<T>(limit: TimeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { clock, timeoutMs, expired, signals = [] } = limit;
  for (const signal of signals) signal?.throwIfAborted();
  return new Promise<T>((resolve, reject) => {
    const controller = new AbortController();
    const stop = (reason: Error): void => {
      controller.abort(reason);
      reject(reason);
    };
    const cancel = startTimer(clock, timeoutMs, signals, () => stop(expired()), stop);
    // An async function, so that a synchronous throw becomes a rejection too.
    (async () => work(controller.signal))().finally(cancel).then(resolve, reject);
  });
}
