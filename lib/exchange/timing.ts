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

/** What is accepted as an HTTP date (RFC 9110, 5.6.7): Date.parse alone takes "-5" for a date in 2001. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /;
/** What a longer time counts as (RFC 9111, 1.2.2). */
const MAX_SECONDS = 2 ** 31;

/**
 * Reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a date seen from `now`.
 * @param value the header as Node gives it
 * @param now wall clock, milliseconds since the epoch
 * @returns whole seconds from 0 (a date that has passed) to 2^31; undefined where the header is absent or makes no sense.
 * A lower limit is for the caller, who knows the deadline.
 */
export function parseRetryAfter(value: string | string[] | undefined, now: number): number | undefined {
  const text = (Array.isArray(value) ? value[0] : value)?.trim();
  if (!text) return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(MAX_SECONDS, Math.ceil(Number(text)));
  if (!HTTP_DATE.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.min(MAX_SECONDS, Math.max(0, Math.ceil((date - now) / 1000)));
}

type Signals = readonly (AbortSignal | undefined)[];

/**
 * Calls one of the two, once: `onTime` after the delay, or `onAbort` with the reason of a signal that is aborted before.
 * No signal may be aborted yet. Returns a function that ends the wait.
 */
export function startTimer(
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

/** Settles as `work` does, or rejects with the reason of the signal where that is aborted first. */
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
  /** What it rejects with at the deadline. */
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
