import { isUtf8 } from 'node:buffer';
import { type IncomingHttpHeaders } from 'node:http';
import { type ExchangeResponse } from './io.js';
import { type ClassifiedError, type Outcome } from './fault.js';

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
function isPage(response: Pick<ExchangeResponse, 'headers' | 'body'>): boolean {
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
function bodyStart({ body }: Pick<ExchangeResponse, 'body'>): string {
  return body.subarray(0, MAX_PAGE_BYTES).toString('latin1');
}

/**
 * What the server has done with our client certificate, as far as a fault or a response shows it:
 * - `refused`: it refused the certificate
 * - `perhaps-refused`: it ended the handshake, or denied access, without saying why
 * - `not-sent`: it requires a certificate and got none. Either none is configured, or the server accepts no key of its type, or a
 *   proxy in front of the server ended TLS.
 */
export type CertificateVerdict = 'refused' | 'perhaps-refused' | 'not-sent';

/** The client certificate that a connection offers to servers that ask for one. */
export interface OfferedCertificate {
  /** The type of its key, such as `RSA` or `secp256k1`. */
  keyType?: string;
}

/** The verdict on our client certificate. Undefined if the outcome has nothing to do with it. */
export function certificateVerdict({ response, fault }: Outcome): CertificateVerdict | undefined {
  return response ? verdictOfResponse(response) : fault.certificateVerdict;
}

/** Whether the server certainly wants another certificate than the one that it got. */
export function isCertain(verdict: CertificateVerdict | undefined): boolean {
  return verdict === 'refused' || verdict === 'not-sent';
}

const CERTIFICATE_REQUIRED = 116;
/** Alerts which say that the server refused our client certificate, or requires one and got none. */
const CERTIFICATE_ALERTS = new Set([42, 43, 44, 45, 46, 48, 49, CERTIFICATE_REQUIRED]);
/**
 * Alerts that end a handshake without naming the certificate as the cause, though it often is the cause: Erlang/OTP sends 40 for
 * a certificate without the extended key usage clientAuth, wolfSSL sends 47 for an RSA-PSS key, and other servers send 50 or
 * 51. Do not add 10, 20, 22 or 80: a server may also send those because of a request.
 */
const HANDSHAKE_ALERTS = new Set([40, 47, 50, 51]);
/** stunnel sends this alert for a client certificate with another host name than the configured one. Other servers send it for any fault. */
const INTERNAL_ERROR = 80;

/** Whether a server that ends the handshake with this alert refuses it. It has then not read the request. */
export function refusesHandshake(alert = 0): boolean {
  return CERTIFICATE_ALERTS.has(alert) || HANDSHAKE_ALERTS.has(alert);
}

/**
 * The verdict on our client certificate if the server ends the connection with this fault.
 * @param handshake `isOverForUs`: whether our side has finished the handshake. With TLS 1.3, a client finishes it before the server
 * verifies the client certificate. `isPending`: whether the server may have asked for our certificate, and has not accepted it yet
 */
export function verdictOfEnd(
  { kind, alert = 0 }: Partial<Pick<ClassifiedError, 'kind' | 'alert'>>,
  certificate: OfferedCertificate | undefined,
  { isOverForUs, isPending }: { isOverForUs: boolean; isPending: boolean },
): CertificateVerdict | undefined {
  const isSuspect = certificate !== undefined && isPending;
  if (CERTIFICATE_ALERTS.has(alert) || (isSuspect && isOverForUs && HANDSHAKE_ALERTS.has(alert))) {
    const isSent = certificate && !(isOverForUs && isUnsupportedInTls13(certificate.keyType));
    return isSent && alert !== CERTIFICATE_REQUIRED ? 'refused' : 'not-sent';
  }
  // Node's own https server, uvicorn and lighttpd with GnuTLS close the connection without an alert.
  const mayBeRefusal = kind === 'reset' || HANDSHAKE_ALERTS.has(alert) || alert === INTERNAL_ERROR;
  return isSuspect && mayBeRefusal ? 'perhaps-refused' : undefined;
}

/**
 * Whether TLS 1.3 has no signature algorithm for keys of this type (https://www.rfc-editor.org/rfc/rfc8446#section-4.2.3). OpenSSL
 * then sends an empty list in place of the certificate and reports no error. Brainpool keys are supported: OpenSSL 3.5 and
 * later use them with each other.
 */
export function isUnsupportedInTls13(keyType = ''): boolean {
  return /^(DSA$|P-224$|SM2$|sec|prime|c2|wap-|Oakley)/.test(keyType);
}

/**
 * The verdict of a reverse proxy in front of the service that checks client certificates:
 * - status 495 of nginx, or a page with status 400, 401 or 403 that mentions a certificate: refused
 * - status 496 of nginx, or its page "No required SSL certificate was sent": not sent
 * - any other page with status 401 or 403: perhaps refused, because HAProxy and Apache do not say why they deny access
 */
function verdictOfResponse(response: ExchangeResponse): CertificateVerdict | undefined {
  const { status } = response;
  const isStatusOfNginx = status === 495 || status === 496;
  if (!isStatusOfNginx && !([400, 401, 403].includes(status) && isPage(response))) return undefined;
  const text = bodyStart(response);
  if (status === 496 || NONE_SENT.test(text)) return 'not-sent';
  if (status === 495 || /certificate/i.test(text)) return 'refused';
  return status === 400 ? undefined : 'perhaps-refused';
}

const NONE_SENT = /\bno (required )?((SSL|TLS|client) )*certificate\b/i;

/** Whether nginx got the client certificate and rejects it. It has another page for a certificate that did not arrive. */
export function isRejectedByNginx(response: ExchangeResponse): boolean {
  const isRefused = verdictOfResponse(response) === 'refused';
  return isRefused && (response.status === 495 || /The SSL certificate error/.test(bodyStart(response)));
}

/**
 * Whether Apache refused because it asks for the client certificate in a Location, which is after it has read the request. Over
 * TLS 1.3 that needs post-handshake authentication (https://www.rfc-editor.org/rfc/rfc8446#section-4.6.2), which Node does not
 * support (https://github.com/nodejs/node/issues/36926).
 */
export function asksLateForCertificate(response: ExchangeResponse): boolean {
  return (
    verdictOfResponse(response) === 'perhaps-refused' && /Post-Handshake Auth/i.test(bodyStart(response))
  );
}
