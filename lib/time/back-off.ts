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
