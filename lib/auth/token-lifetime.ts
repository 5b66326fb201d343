/** Milliseconds throughout. */

const SHORTEST_SKEW = 1_000;
const LONGEST_SKEW = 30_000;
const REFRESH_AT = 0.75;
const LONGEST_JITTER = 10_000;
const JITTER = 0.02;

/**
 * How long before its end a token counts as dead: a tenth of the lifetime, at least 1 s (an `exp` of whole seconds
 * ends up to a second early), at most 30 s, and never over half the lifetime.
 */
export function hardSkew(lifetime: number): number {
  return Math.min(Math.max(lifetime / 10, SHORTEST_SKEW), LONGEST_SKEW, lifetime / 2);
}

/**
 * How long a token may be handed out.
 * @param reserve life that it must still have when it is handed out; at most half of the lifetime counts
 */
export function usableLife(lifetime: number, reserve = 0): number {
  return lifetime - Math.max(hardSkew(lifetime), Math.min(reserve, lifetime / 2));
}

/**
 * When to renew: at 75 % of the usable life less a jitter (at most 10 s and 2 %), so that processes that started
 * together do not renew together.
 * @param random in [0, 1)
 */
export function refreshPoint(usable: number, random: number): number {
  return usable * REFRESH_AT - random * Math.min(LONGEST_JITTER, usable * JITTER);
}
