const RETRY_BASE_MS = 100;
const RENEWAL_BASE_MS = 3_000;
const RENEWAL_CAP_MS = 30_000;

/**
 * The pause before the next attempt of a request that callers wait for: full jitter over 100 ms * 2^n.
 * @param attempt how many there were, from 1
 * @param random in [0, 1)
 */
export function retryDelay(attempt: number, random: number): number {
  return random * RETRY_BASE_MS * 2 ** (attempt - 1);
}

/** The pause before a renewal in the background is tried again: 3 s, doubling to 30 s. */
export function renewalDelay(failures: number): number {
  return Math.min(RENEWAL_BASE_MS * 2 ** Math.min(failures - 1, 10), RENEWAL_CAP_MS);
}
