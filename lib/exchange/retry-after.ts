import { type IncomingHttpHeaders } from 'node:http';

/** The beginning of an HTTP date (RFC 9110, 5.6.7): Date.parse alone takes "-5" for a date in 2001. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /;
/** A longer time counts as this (RFC 9111, 1.2.2). */
const MAX_SECONDS = 2 ** 31;

/**
 * Reads a date of HTTP, also in its two old forms (RFC 850, asctime). An asctime date names no time zone: it is in GMT
 * (RFC 9110, 5.6.7), which Date.parse does not know.
 * @returns milliseconds since the epoch, or NaN
 */
export function parseHttpDate(text: string | undefined): number {
  const date = text?.trim() ?? '';
  return HTTP_DATE.test(date) ? Date.parse(/\d$/.test(date) ? `${date} GMT` : date) : NaN;
}

/**
 * Reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a date. A date is compared with the server's clock, as its own
 * Date header has it, because this machine's clock may differ by minutes. A cache adds Age: the seconds since that Date.
 * @param now this machine's clock, in milliseconds since the epoch, for a response without a Date
 * @returns whole seconds from 0 (a date that has passed) to 2^31; undefined if the header is absent or makes no sense. The
 * caller sets a lower limit, by its deadline.
 */
export function parseRetryAfter(headers: IncomingHttpHeaders | undefined, now: number): number | undefined {
  const text = headers?.['retry-after']?.trim();
  if (!text) return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(MAX_SECONDS, Math.ceil(Number(text)));
  const answeredAt = parseHttpDate(headers?.date) + 1_000 * (Number(headers?.age) || 0);
  const seconds = (parseHttpDate(text) - (Number.isNaN(answeredAt) ? now : answeredAt)) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.min(MAX_SECONDS, Math.max(0, Math.ceil(seconds)));
}
