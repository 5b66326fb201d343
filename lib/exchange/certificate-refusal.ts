import { parseJson } from './decode.js';
import { type ExchangeResponse, type Outcome } from './exchange.types.js';

const MAX_PAGE_BYTES = 4_096;

/** Whether the answer is a page (HTML). The service talks JSON: this is a proxy, a login page or a website. */
export function isPage(answer: Pick<ExchangeResponse, 'headers' | 'body'>): boolean {
  const isHtml = /html/i.test(answer.headers['content-type'] ?? '');
  return isHtml || /^\s*<(!doctype|html|\?xml)/i.test(bodyStart(answer));
}

/**
 * What an answer says about our client certificate, if a proxy before the service checks it.
 * - `refused`: nginx's 495 and 496, and a page of 400, 401 or 403 that speaks of certificates.
 * - `perhaps`: any other page of 401 or 403: HAProxy and Apache do not say why they deny.
 */
export function certificateVerdict(answer: ExchangeResponse): 'refused' | 'perhaps' | undefined {
  const { status } = answer;
  if (status === 495 || status === 496) return 'refused';
  if (![400, 401, 403].includes(status) || !isPage(answer)) return undefined;
  if (/certificate/i.test(bodyStart(answer))) return 'refused';
  return status === 400 ? undefined : 'perhaps';
}

/** Whether the answer says that no certificate arrived: nginx's 496, or its page "No required SSL certificate was sent". */
export function saysCertificateMissing(answer: ExchangeResponse): boolean {
  if (answer.status === 496) return true;
  const isSaid = /\bno (required )?((SSL|TLS|client) )*certificate\b/i.test(bodyStart(answer));
  return isSaid && certificateVerdict(answer) === 'refused';
}

/**
 * Whether Apache refused because it asks for the client certificate in a Location, after it has read the request. Over TLS 1.3
 * that needs post-handshake authentication (RFC 8446, 4.6.2), which Node does not offer.
 */
export function asksTooLate(answer: ExchangeResponse): boolean {
  return certificateVerdict(answer) === 'perhaps' && /Post-Handshake Auth/i.test(bodyStart(answer));
}

export const ASKS_TOO_LATE =
  'asks for the client certificate after the request, which Node does not answer over TLS 1.3';
export const ASK_EARLIER =
  'Nothing is wrong with the certificate. Ask who runs the server at {address}: Apache asks so late if SSLVerifyClient is in a Location or Directory. It has to ask in the handshake (SSLVerifyClient for the whole virtual host).';

/**
 * Whether the answer of a sidecar may be its own, after the service refused its client certificate: Caddy answers 502 with an
 * empty body, nginx 502, HAProxy 502 or 503 and Apache 500 or 502 with a page. What the service itself says is JSON.
 */
export function isFromSidecar({ status, body }: Pick<ExchangeResponse, 'status' | 'body'>): boolean {
  return [500, 502, 503].includes(status) && parseJson(body.toString('utf8')) === undefined;
}

export const SIDECAR_FAILED = 'the sidecar on this machine got no answer from the service';
export const CHECK_SIDECAR_CERTIFICATE =
  'Look into the log of the sidecar at {address}. If it says that the service ended the connection or sent an alert, the service refused the client certificate of the sidecar: check that certificate, its key and its dates, and that it is of this application and this environment.';

function bodyStart({ body }: Pick<ExchangeResponse, 'body'>): string {
  return body.subarray(0, MAX_PAGE_BYTES).toString('latin1');
}

/** Whether the connection just ended: by a server that refuses without an alert, or by one that crashed. */
export function isConnectionReset({ fault }: Outcome): boolean {
  return fault?.kind === 'reset';
}

/** Whether an exchange failed because of our client certificate: by the end of the handshake, or by a proxy's answer. */
export function certificateRefusal({ response, fault }: Outcome): 'refused' | 'perhaps' | undefined {
  if (response) return certificateVerdict(response);
  if (fault.certificateRefused) return 'refused';
  return fault.certificateSuspected ? 'perhaps' : undefined;
}
