import { type ClassifiedError, type Outcome } from './fault.js';
import { type ExchangeResponse } from './io.js';
import { bodyStart, isPage } from './response.js';

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
