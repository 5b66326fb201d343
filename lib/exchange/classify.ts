import { type ConnectionErrorKind } from '../errors/index.js';

export interface Classified {
  kind: ConnectionErrorKind;
  reason?: string;
  certificateRefused: boolean;
}

// RFC 8446, 6.2 (and RFC 5246, 7.2.2): bad_certificate 42 to certificate_unknown 46, unknown_ca 48,
// access_denied 49, certificate_required 116.
const CERTIFICATE_ALERTS = new Set([42, 43, 44, 45, 46, 48, 49, 116]);
const CERTIFICATE_ALERT_CODE =
  /ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(REVOKED|EXPIRED|UNKNOWN|REQUIRED)|UNKNOWN_CA|ACCESS_DENIED)$/;
const VERIFICATION_CODE =
  /^(CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|ERROR_IN_CERT|UNSPECIFIED|ERR_TLS_)/;

const KINDS: Readonly<Record<string, ConnectionErrorKind>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EAI_FAIL: 'dns',
  ENODATA: 'dns',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'reset',
  ECONNABORTED: 'reset',
  EPIPE: 'reset',
  ERR_STREAM_PREMATURE_CLOSE: 'reset',
  EPROTO: 'tls',
  ERR_AGENT_CLOSED: 'closed',
};

/** RFC 8446, 6.2. OpenSSL's versions spell what comes before differently. */
export const HANDSHAKE_FAILURE = /_ALERT_HANDSHAKE_FAILURE$/;

/** Sorts an error of Node, OpenSSL or the system into one of our kinds. Keeps only its code, never its text. */
export function classify(error: unknown): Classified {
  const { code, message } = describe(error);
  const reason = code === 'EPROTO' ? opensslCode(message) : code;
  const alert = Number(/SSL alert number (\d+)/.exec(message)?.[1]);
  const isCertificateAlert = CERTIFICATE_ALERTS.has(alert) || CERTIFICATE_ALERT_CODE.test(reason ?? '');
  // A proxy's complaint about a certificate is not about the one that we show to the service.
  const certificateRefused = isCertificateAlert && !code?.startsWith('ERR_PROXY_');
  return { kind: kindOf(code, message), reason, certificateRefused };
}

/**
 * EPROTO has OpenSSL's reason in its text: `error:0A000152:SSL routines::unsafe legacy renegotiation disabled:`. It is from a
 * list of OpenSSL's own, and becomes the code that Node makes of it elsewhere. What follows may be the other side's words.
 */
function opensslCode(message: string): string {
  const reason = /error:[\dA-F]{8}:[^:]*:[^:]*:([\w/ -]{3,60})(?=:|$)/i.exec(message)?.[1];
  return reason === undefined ? 'EPROTO' : `ERR_SSL_${reason.toUpperCase().replace(/\W+/g, '_')}`;
}

function kindOf(code: string | undefined, message: string): ConnectionErrorKind {
  if (code === undefined) return /socket hang up|aborted/.test(message) ? 'reset' : 'network';
  if (Object.hasOwn(KINDS, code)) return KINDS[code];
  if (code.startsWith('ERR_PROXY_')) return 'proxy';
  if (VERIFICATION_CODE.test(code) || code.startsWith('ERR_SSL_')) return 'tls';
  return code.startsWith('HPE_') || code.startsWith('ERR_HTTP_') ? 'protocol' : 'network';
}

// By its form, not its class: an error may come from another realm (a vm context, a worker).
function describe(error: unknown): { code?: string; message: string } {
  if (typeof error !== 'object' || error === null) return { message: '' };
  const { code, message, errors } = error as { code?: unknown; message?: unknown; errors?: unknown };
  // Happy eyeballs: one error for each address that was tried.
  if (typeof code !== 'string' && Array.isArray(errors)) return describe(errors[0]);
  return { code: typeof code === 'string' ? code : undefined, message: String(message) };
}
