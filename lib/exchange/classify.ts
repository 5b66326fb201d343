import { type ConnectionErrorKind } from '../errors/index.js';
import { CONNECT_TIMEOUT } from './exchange.types.js';

export interface ClassifiedError {
  kind: ConnectionErrorKind;
  reason?: string;
  /** OpenSSL's words for why it refused the server's certificate: Node has no code for some causes, only UNSPECIFIED. */
  opensslText?: string;
  /** The number of the TLS alert with which the server ended the connection. */
  alert?: number;
  /** The alert is about our client certificate: the server refused it, or missed it. */
  certificateRefused: boolean;
}

/** RFC 8446, 6.2 (and RFC 5246, 7.2.2): alerts that can answer a client certificate, by the end of OpenSSL's code. */
const ALERTS: Readonly<Record<string, number>> = {
  HANDSHAKE_FAILURE: 40,
  BAD_CERTIFICATE: 42,
  UNSUPPORTED_CERTIFICATE: 43,
  CERTIFICATE_REVOKED: 44,
  CERTIFICATE_EXPIRED: 45,
  CERTIFICATE_UNKNOWN: 46,
  ILLEGAL_PARAMETER: 47,
  UNKNOWN_CA: 48,
  ACCESS_DENIED: 49,
  DECODE_ERROR: 50,
  DECRYPT_ERROR: 51,
  INTERNAL_ERROR: 80,
  CERTIFICATE_REQUIRED: 116,
};
const CERTIFICATE_ALERTS = new Set([42, 43, 44, 45, 46, 48, 49, 116]);
/**
 * Alerts that end a handshake and do not name the certificate as the cause, though it often is: Erlang/OTP sends 40 for a
 * certificate without the extended key usage clientAuth, wolfSSL 47 for an RSA-PSS key, other servers 50 or 51. The list is
 * closed: 10, 20, 22 and 80 can also be the answer to a request.
 */
const HANDSHAKE_ALERTS = new Set([40, 47, 50, 51]);
/** stunnel sends it for a certificate with another host name than the configured one. Other servers send it for any fault. */
const INTERNAL_ERROR = 80;

const VERIFICATION_CODE =
  /^(CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|ERROR_IN_CERT|UNSPECIFIED|ERR_TLS_)/;

const KINDS: Readonly<Record<string, ConnectionErrorKind>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EAI_FAIL: 'dns',
  ENODATA: 'dns',
  ETIMEDOUT: 'timeout',
  [CONNECT_TIMEOUT]: 'timeout',
  ECONNRESET: 'reset',
  ECONNABORTED: 'reset',
  EPIPE: 'reset',
  ERR_STREAM_PREMATURE_CLOSE: 'reset',
  EPROTO: 'tls',
  ERR_AGENT_CLOSED: 'closed',
};

/** Whether this alert, at the end of a handshake, says that the handshake failed. */
export function isHandshakeAlert({ alert = 0 }: Pick<ClassifiedError, 'alert'>): boolean {
  return HANDSHAKE_ALERTS.has(alert);
}

/**
 * Whether the end of a handshake may be the server's refusal of our certificate. Node's own https server, uvicorn and lighttpd
 * with GnuTLS refuse without an alert.
 */
export function mayBeCertificateRefusal({
  kind,
  alert = 0,
}: Partial<Pick<ClassifiedError, 'kind' | 'alert'>>): boolean {
  return kind === 'reset' || HANDSHAKE_ALERTS.has(alert) || alert === INTERNAL_ERROR;
}

/**
 * Sorts an error of Node, OpenSSL or the system into one of our kinds. Keeps its code, and of its text only what OpenSSL says of
 * the server's certificate, from a list of its own.
 */
export function classify(error: unknown): ClassifiedError {
  const { code: given, message } = readCodeAndMessage(error);
  // A silent proxy has as long as the whole connection, and it is chance which of the two timers is seen first.
  const code = given === 'ERR_PROXY_TIMEOUT' ? CONNECT_TIMEOUT : given;
  // From Node 22.20 on, the code of some alerts has OpenSSL's slash in it: ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE.
  const reason = code === 'EPROTO' ? opensslCode(message) : code?.replaceAll('/', '_');
  const named = ALERTS[/_ALERT_([A-Z_]+)$/.exec(reason ?? '')?.[1] ?? ''];
  const alert = Number(/SSL alert number (\d+)/.exec(message)?.[1] ?? named) || undefined;
  // A proxy's complaint about a certificate is not about the one that we show to the service.
  const certificateRefused = CERTIFICATE_ALERTS.has(alert ?? 0) && !code?.startsWith('ERR_PROXY_');
  const opensslText = code === 'UNSPECIFIED' ? /^[\w ,/()'-]{3,80}$/.exec(message)?.[0] : undefined;
  return { kind: kindFromCode(code, message), reason, opensslText, alert, certificateRefused };
}

/**
 * EPROTO has OpenSSL's reason in its text: `error:0A000152:SSL routines::unsafe legacy renegotiation disabled:`. It is from a
 * list of OpenSSL's own, and becomes the code that Node makes of it elsewhere. What follows may be the other side's words.
 */
function opensslCode(message: string): string {
  const reason = /error:[\dA-F]{8}:[^:]*:[^:]*:([\w/ -]{3,60})(?=:|$)/i.exec(message)?.[1];
  return reason === undefined ? 'EPROTO' : `ERR_SSL_${reason.toUpperCase().replace(/\W+/g, '_')}`;
}

function kindFromCode(code: string | undefined, message: string): ConnectionErrorKind {
  if (code === undefined) return /socket hang up|aborted/.test(message) ? 'reset' : 'network';
  if (Object.hasOwn(KINDS, code)) return KINDS[code];
  if (code.startsWith('ERR_PROXY_')) return 'proxy';
  if (VERIFICATION_CODE.test(code) || code.startsWith('ERR_SSL_')) return 'tls';
  return code.startsWith('HPE_') || code.startsWith('ERR_HTTP_') ? 'protocol' : 'network';
}

// By its form, not its class: an error may come from another realm (a vm context, a worker).
function readCodeAndMessage(error: unknown): { code?: string; message: string } {
  if (typeof error !== 'object' || error === null) return { message: '' };
  const { code, message, errors } = error as { code?: unknown; message?: unknown; errors?: unknown };
  // Happy eyeballs: one error for each address that was tried.
  if (typeof code !== 'string' && Array.isArray(errors)) return readCodeAndMessage(errors[0]);
  return { code: typeof code === 'string' ? code : undefined, message: String(message) };
}
