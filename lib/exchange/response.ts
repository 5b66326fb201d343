import { isUtf8 } from 'node:buffer';
import { type IncomingHttpHeaders } from 'node:http';
import { type ExchangeResponse } from './io.js';

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/**
 * Parses JSON. Returns undefined for text that is not JSON. Ignores a byte order mark
 * (https://www.rfc-editor.org/rfc/rfc8259#section-8.1).
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * Parses the body of a response as JSON; undefined if it is none. JSON is UTF-8, and many servers that name iso-8859-1 send UTF-8. So
 * the charset of the content type counts only if the bytes are not valid UTF-8, or are not JSON when they are read as UTF-8.
 */
export function parseBody({ headers, body }: Pick<ExchangeResponse, 'headers' | 'body'>): unknown {
  const json = parseJson(body.toString('utf8'));
  if (json !== undefined && isUtf8(body)) return json;
  const charset = charsetOf(headers);
  const text = charset === undefined ? undefined : decodeText(body, charset);
  return (text === undefined ? undefined : parseJson(text)) ?? json;
}

/** The charset that the content type names. */
export function charsetOf(headers: IncomingHttpHeaders): string | undefined {
  return /;\s*charset="?([^\s;"]+)/i.exec(headers['content-type'] ?? '')?.[1];
}

/** Decodes text, without a byte order mark. Undefined if Node does not know the charset. */
export function decodeText(body: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return undefined;
  }
}

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The beginning of an HTTP date (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7). Without this check, Date.parse would read
 * "-5" as a date in 2001.
 */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /;
/** An ISO 8601 date with a time: date, time, time zone. */
const ISO_DATE = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d[\d:.]*) ?(Z|[+-]\d\d:?\d\d)?$/i;
/** A day. A longer Retry-After is reduced to it. */
const MAX_RETRY_AFTER_S = 86_400;

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
 * Reads a Retry-After header (https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3), which has seconds or a date. Some gateways send a
 * date as a number (the seconds or milliseconds since 1970) or in ISO 8601. A date is compared with the server's own clock (its
 * Date header, plus the Age that a cache adds), because this machine's clock may differ by minutes.
 * @param now this machine's clock in milliseconds since the epoch, for a response without a Date header
 * @returns whole seconds from 0 (the date has passed) to 86,400; undefined if the header is absent or not valid. The caller may
 * have less time than that.
 */
export function parseRetryAfter(headers: IncomingHttpHeaders | undefined, now: number): number | undefined {
  const text = headers?.['retry-after']?.trim();
  if (!text) return undefined;
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  const sentAt = parseHttpDate(headers?.date) + 1_000 * (Number(headers?.age) || 0);
  const secondsUntil = (at: number) => (at - (Number.isNaN(sentAt) ? now : sentAt)) / 1_000;
  let seconds = number;
  if (Number.isNaN(number)) seconds = secondsUntil(parseDate(text));
  // No number of seconds is that large: 1e9 is the year 2001 in seconds since 1970, and 1e12 in milliseconds.
  else if (number >= 1e9) seconds = secondsUntil(number >= 1e12 ? number : number * 1_000);
  return Number.isNaN(seconds) ? undefined : Math.min(MAX_RETRY_AFTER_S, Math.max(0, Math.ceil(seconds)));
}

/** Reads an HTTP date, or an ISO 8601 date with a time, which is in UTC without a time zone. Returns NaN for anything else. */
function parseDate(text: string): number {
  const [, date, time, zone = 'Z'] = ISO_DATE.exec(text) ?? [];
  return date === undefined ? parseHttpDate(text) : Date.parse(`${date}T${time}${zone}`);
}

const MAX_PAGE_BYTES = 4_096;

/** Whether the response is an HTML page. The service itself sends JSON, so a proxy, a login page or a website has responded. */
export function isPage(response: Pick<ExchangeResponse, 'headers' | 'body'>): boolean {
  const isHtml = /html/i.test(response.headers['content-type'] ?? '');
  return isHtml || /^\s*<(!doctype|html|\?xml)/i.test(bodyStart(response));
}

/**
 * Whether a response through a sidecar may come from the sidecar itself, for example because the service refused its client
 * certificate. Caddy then sends 502 with an empty body. nginx sends a page with 502, HAProxy with 502 or 503, and Apache with
 * 500 or 502. The service itself sends JSON.
 */
export function isFromSidecar(response: ExchangeResponse): boolean {
  return [500, 502, 503].includes(response.status) && parseBody(response) === undefined;
}

/** What the body is, in one word. */
export function bodyKind(response: ExchangeResponse): 'json' | 'page' | 'text' | 'empty' {
  if (parseBody(response) !== undefined) return 'json';
  if (isPage(response)) return 'page';
  return response.body.toString('latin1').trim() === '' ? 'empty' : 'text';
}

/** The beginning of the body, which is enough to recognize a page. */
export function bodyStart({ body }: Pick<ExchangeResponse, 'body'>): string {
  return body.subarray(0, MAX_PAGE_BYTES).toString('latin1');
}
