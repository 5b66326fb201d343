import { parseJson } from './decode.js';
import { type ExchangeResponse, type Outcome } from './exchange.types.js';

const MAX_PAGE_BYTES = 4_096;

/** Whether the response is an HTML page. The service itself sends JSON, so a proxy, a login page or a website has responded. */
export function isPage(response: Pick<ExchangeResponse, 'headers' | 'body'>): boolean {
  const isHtml = /html/i.test(response.headers['content-type'] ?? '');
  return isHtml || /^\s*<(!doctype|html|\?xml)/i.test(bodyStart(response));
}

/**
 * What a response says about our client certificate, if a reverse proxy in front of the service checks it:
 * - `refused`: status 495 or 496 of nginx, or a page with status 400, 401 or 403 that mentions a certificate
 * - `perhaps`: any other page with status 401 or 403, because HAProxy and Apache do not say why they deny access
 */
export function certificateVerdict(response: ExchangeResponse): 'refused' | 'perhaps' | undefined {
  const { status } = response;
  if (status === 495 || status === 496) return 'refused';
  if (![400, 401, 403].includes(status) || !isPage(response)) return undefined;
  if (/certificate/i.test(bodyStart(response))) return 'refused';
  return status === 400 ? undefined : 'perhaps';
}

/** Whether the response says that no certificate arrived: nginx's status 496, or its page "No required SSL certificate was sent". */
export function saysCertificateMissing(response: ExchangeResponse): boolean {
  if (response.status === 496) return true;
  const isSaid = /\bno (required )?((SSL|TLS|client) )*certificate\b/i.test(bodyStart(response));
  return isSaid && certificateVerdict(response) === 'refused';
}

/**
 * Whether Apache refused because it asks for the client certificate in a Location, which is after it has read the request. Over
 * TLS 1.3 that needs post-handshake authentication (https://www.rfc-editor.org/rfc/rfc8446#section-4.6.2), which Node does not
 * support (https://github.com/nodejs/node/issues/36926).
 */
export function requestsCertificateLate(response: ExchangeResponse): boolean {
  return certificateVerdict(response) === 'perhaps' && /Post-Handshake Auth/i.test(bodyStart(response));
}

export const LATE_CERTIFICATE_REQUEST =
  'asks for the client certificate after the request, which Node does not support over TLS 1.3';
export const REQUEST_CERTIFICATE_EARLIER =
  'Nothing is wrong with the certificate. Ask who runs the server at {address}: Apache asks so late if SSLVerifyClient is in a Location or Directory. It has to ask in the handshake (SSLVerifyClient for the whole virtual host).';

/**
 * Whether a response through a sidecar may come from the sidecar itself, for example because the service refused its client
 * certificate. Caddy then sends 502 with an empty body. nginx sends a page with 502, HAProxy with 502 or 503, and Apache with
 * 500 or 502. The service itself sends JSON.
 */
export function isFromSidecar({ status, body }: Pick<ExchangeResponse, 'status' | 'body'>): boolean {
  return [500, 502, 503].includes(status) && parseJson(body.toString('utf8')) === undefined;
}

export const SIDECAR_FAILED = 'the sidecar on this machine got no response from the service';
export const CHECK_SIDECAR_CERTIFICATE =
  'Look into the log of the sidecar at {address}. If it says that the service ended the connection or sent an alert, the service refused the client certificate of the sidecar: check that certificate, its key and its dates, and that it is of this application and this environment.';

function bodyStart({ body }: Pick<ExchangeResponse, 'body'>): string {
  return body.subarray(0, MAX_PAGE_BYTES).toString('latin1');
}

/** Whether an exchange failed because of our client certificate: in the handshake, or by the response of a reverse proxy. */
export function certificateRefusal({ response, fault }: Outcome): 'refused' | 'perhaps' | undefined {
  if (response) return certificateVerdict(response);
  if (fault.certificateRefused) return 'refused';
  return fault.certificateSuspected ? 'perhaps' : undefined;
}
