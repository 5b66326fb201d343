import { type Clock } from './clock.js';

type Signals = readonly (AbortSignal | undefined)[];

/**
 * Calls `onTime` after the delay, or `onAbort` with the reason of a signal that aborts earlier. Exactly one of them is
 * called, once. No signal may be aborted already. Returns a function that cancels the timer and removes the listeners.
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
 * Waits, or rejects with the reason of the first signal that aborts. `node:timers/promises` does not serve here: it takes
 * only one signal, rejects with its own AbortError, and cannot use a test's clock.
 */
export async function sleep(clock: Clock, delayMs: number, ...signals: Signals): Promise<void> {
  for (const signal of signals) signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    startTimer(clock, delayMs, signals, resolve, reject);
  });
}

/** Settles like `work`, or rejects with the signal's reason if the signal aborts first. */
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
  /** Creates the error for the deadline. */
  expired: () => Error;
  /** If one of these aborts, the promise rejects with its reason. */
  signals?: Signals;
}

/**
 * Runs `work` with a deadline. At the deadline, or when a signal aborts, rejects at once and aborts the signal of the
 * work.
 */
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
    // An async function turns a synchronous throw of `work` into a rejection.
    (async () => work(controller.signal))().finally(cancel).then(resolve, reject);
  });
}
