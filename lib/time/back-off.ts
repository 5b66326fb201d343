const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 20_000;
const MAX_SPREAD_MS = 5_000;

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
  return random * pauseOf(retry);
}

/**
 * The wait before a retry at a time that the server has named, in milliseconds: at least 100 ms * 2^n, and up to 5 s longer,
 * so that not all clients come at the same moment.
 * @param askedMs from now on; 0 for a time that has passed
 * @param leftMs the random part is left out if it does not fit into this
 */
export function askedDelay(askedMs: number, retry: number, random: number, leftMs: number): number {
  const pauseMs = pauseOf(retry);
  const leastMs = Math.max(askedMs, pauseMs);
  const spreadMs = random * Math.min(MAX_SPREAD_MS, Math.max(askedMs / 10, pauseMs));
  return leastMs + spreadMs > leftMs ? leastMs : leastMs + spreadMs;
}

function pauseOf(retry: number): number {
  return backOff(retry, RETRY_BASE_MS, RETRY_CAP_MS);
}
