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
