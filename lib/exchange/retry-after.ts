/** The beginning of an HTTP date (RFC 9110, 5.6.7): Date.parse alone takes "-5" for a date in 2001. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /;
/** A longer time counts as this (RFC 9111, 1.2.2). */
const MAX_SECONDS = 2 ** 31;

/**
 * Reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a date seen from `now`.
 * @param now wall clock, milliseconds since the epoch
 * @returns whole seconds from 0 (a date that has passed) to 2^31; undefined if the header is absent or makes no sense. The
 * caller sets a lower limit, by its deadline.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(MAX_SECONDS, Math.ceil(Number(text)));
  if (!HTTP_DATE.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.min(MAX_SECONDS, Math.max(0, Math.ceil((date - now) / 1000)));
}
