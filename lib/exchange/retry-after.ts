import { type IncomingHttpHeaders } from 'node:http';

/**
 * The beginning of an HTTP date (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7). Without this check, Date.parse would read
 * "-5" as a date in 2001.
 */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /;
/** The maximum (https://www.rfc-editor.org/rfc/rfc9111#section-1.2.2). A longer time is reduced to it. */
const MAX_SECONDS = 2 ** 31;

/**
 * Reads an HTTP date, also in the two obsolete formats (RFC 850 and asctime). An asctime date names no time zone. Date.parse would
 * read it as local time, but HTTP dates are always in GMT.
 * @returns milliseconds since the epoch, or NaN
 */
export function parseHttpDate(text: string | undefined): number {
  const date = text?.trim() ?? '';
  return HTTP_DATE.test(date) ? Date.parse(/\d$/.test(date) ? `${date} GMT` : date) : NaN;
}

/**
 * Reads a Retry-After header (https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3), which has seconds or a date. A date is compared
 * with the server's own clock (its Date header, plus the Age that a cache adds), because this machine's clock may differ by
 * minutes.
 * @param now this machine's clock in milliseconds since the epoch, for a response without a Date header
 * @returns whole seconds from 0 (the date has passed) to 2^31; undefined if the header is absent or not valid. The caller may
 * have less time than that.
 */
export function parseRetryAfter(headers: IncomingHttpHeaders | undefined, now: number): number | undefined {
  const text = headers?.['retry-after']?.trim();
  if (!text) return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(MAX_SECONDS, Math.ceil(Number(text)));
  const sentAt = parseHttpDate(headers?.date) + 1_000 * (Number(headers?.age) || 0);
  const seconds = (parseHttpDate(text) - (Number.isNaN(sentAt) ? now : sentAt)) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.min(MAX_SECONDS, Math.max(0, Math.ceil(seconds)));
}
