import { setMaxListeners } from 'node:events';
import * as timers from 'node:timers';

/**
 * Node's own setImmediate(), read when this file is loaded. Fake timers in an application's tests may replace it later, and a call
 * that waits for a turn of the event loop would then hang. Time limits use the setTimeout() of the moment on purpose: fake
 * timers move them too.
 */
export const { setImmediate, clearImmediate } = timers;

/** Waits one turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export const DAY_MS = 86_400_000;

/** Formats a date like "2030-01-31T12:00:00Z". */
export function formatDate(value: Date | string | number): string {
  return new Date(value).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The clock and timers of a client. Tests pass a fake. */
export interface Clock {
  /** Milliseconds since the epoch, by the wall clock. */
  now(): number;
  /** Milliseconds since an arbitrary moment. Setting the wall clock does not change it. */
  monotonic(): number;
  /**
   * Sets a timer that keeps the process running, because a caller waits for it. Returns a function that cancels the
   * timer.
   */
  schedule(callback: () => void, delayMs: number): () => void;
  /** Sets a timer that does not keep the process running. Returns a function that cancels the timer. */
  watch(callback: () => void, delayMs: number): () => void;
}

/** A moment, on both clocks. */
export interface Moment {
  wall: number;
  monotonic: number;
}

/** The current moment, or the moment `agoMs` milliseconds ago. */
export function momentOf(clock: Clock, agoMs = 0): Moment {
  return { wall: clock.now() - agoMs, monotonic: clock.monotonic() - agoMs };
}

/**
 * Milliseconds since a moment, by the clock on which more time has passed. The wall clock may have been set back since
 * then, and the monotonic clock does not run while a virtual machine is suspended.
 */
export function elapsedMs(clock: Clock, since: Moment): number {
  return Math.max(clock.now() - since.wall, clock.monotonic() - since.monotonic);
}

const MAX_TIMER_MS = 2 ** 31 - 1;

/** Limits a delay to what setTimeout accepts. With a longer delay, setTimeout would fire at once. */
export function timerDelay(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_TIMER_MS);
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule: (callback, delayMs) => {
    let immediate: NodeJS.Immediate | undefined;
    // If the event loop was blocked, Node fires overdue timers before it reads data that has already arrived. Waiting for
    // setImmediate() lets it read that data first, so that a response which arrived in time does not count as a time-out.
    const timer = setTimeout(() => (immediate = setImmediate(callback)), timerDelay(delayMs));
    return () => {
      clearTimeout(timer);
      clearImmediate(immediate);
    };
  },
  watch: (callback, delayMs) => {
    const timer = setTimeout(callback, timerDelay(delayMs)).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * A clock whose timers never keep the process running: for background work, and for work whose callers have timers of
 * their own.
 */
export function watching(clock: Clock): Clock {
  const watch: Clock['watch'] = (callback, delayMs) => clock.watch(callback, delayMs);
  return { now: () => clock.now(), monotonic: () => clock.monotonic(), schedule: watch, watch };
}

export type Signals = readonly (AbortSignal | undefined)[];

/**
 * Lets any number of calls in flight listen to one signal. Otherwise Node warns of a memory leak (MaxListenersExceededWarning) at the
 * eleventh.
 */
export function allowManyListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}

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
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
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

const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 20_000;
const MAX_SPREAD_MS = 5_000;

/** Exponential back-off: `baseMs`, doubled with each try, at most `capMs`. `tries` counts from 0. */
export function backOff(tries: number, baseMs: number, capMs: number): number {
  return Math.min(capMs, baseMs * 2 ** tries);
}

/**
 * Milliseconds to wait before a retry, with full jitter: a random time from 0 to 100 ms * 2^retry, at most 20 s.
 * @param retry counts from 0
 * @param random in [0, 1)
 */
export function retryDelay(retry: number, random: number): number {
  return random * pauseOf(retry);
}

/**
 * Milliseconds to wait before a retry if the server has sent Retry-After: at least that time, and at least
 * 100 ms * 2^retry. Jitter of up to 5 s is added, so that clients with the same Retry-After do not all come at once.
 * @param askedMs the time of Retry-After from now on; 0 if it has passed
 * @param leftMs the time that is left for the call. The jitter is omitted if it does not fit
 */
export function delayAfterRetryAfter(askedMs: number, retry: number, random: number, leftMs: number): number {
  const pauseMs = pauseOf(retry);
  const leastMs = Math.max(askedMs, pauseMs);
  const spreadMs = random * Math.min(MAX_SPREAD_MS, Math.max(askedMs / 10, pauseMs));
  return leastMs + spreadMs > leftMs ? leastMs : leastMs + spreadMs;
}

function pauseOf(retry: number): number {
  return backOff(retry, RETRY_BASE_MS, RETRY_CAP_MS);
}
