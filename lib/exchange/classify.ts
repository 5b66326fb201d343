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

/** OpenSSL's words for an answer that is no TLS record. */
const NOT_TLS = /wrong version number|packet length too long|unknown protocol|http request/i;

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

/** OpenSSL's versions spell this alert differently (RFC 8446, 6.2: handshake_failure). */
export const HANDSHAKE_FAILURE = 'TLS_ALERT_40';

/** Sorts an error of Node, OpenSSL or the system into one of our kinds. Keeps only its code, never its text. */
export function classify(error: unknown): Classified {
  const { code, message } = describe(error);
  // OpenSSL's versions spell the code differently, and some give only EPROTO; the alert's number is the same in all.
  const alert = Number(/SSL alert number (\d+)/.exec(message)?.[1]);
  const isCertificateAlert = CERTIFICATE_ALERTS.has(alert) || CERTIFICATE_ALERT_CODE.test(code ?? '');
  // A proxy's complaint about a certificate is not about the one that we show to the service.
  const certificateRefused = isCertificateAlert && !code?.startsWith('ERR_PROXY_');
  return { kind: kindOf(code, message), reason: reasonOf(code, message, alert), certificateRefused };
}

function kindOf(code: string | undefined, message: string): ConnectionErrorKind {
  if (code === undefined) return /socket hang up|aborted/.test(message) ? 'reset' : 'network';
  if (Object.hasOwn(KINDS, code)) return KINDS[code];
  if (code.startsWith('ERR_PROXY_')) return 'proxy';
  if (VERIFICATION_CODE.test(code) || code.startsWith('ERR_SSL_')) return 'tls';
  return code.startsWith('HPE_') || code.startsWith('ERR_HTTP_') ? 'protocol' : 'network';
}

/** EPROTO hides which TLS alert it was, and that the other side talks something else. */
function reasonOf(code: string | undefined, message: string, alert: number): string | undefined {
  if (code?.endsWith('_ALERT_HANDSHAKE_FAILURE')) return HANDSHAKE_FAILURE;
  if (code !== 'EPROTO') return code;
  if (NOT_TLS.test(message)) return 'ERR_SSL_WRONG_VERSION_NUMBER';
  return Number.isNaN(alert) ? code : `TLS_ALERT_${alert}`;
}

// By its form, not its class: an error may come from another realm (a vm context, a worker).
function describe(error: unknown): { code?: string; message: string } {
  if (typeof error !== 'object' || error === null) return { message: '' };
  const { code, message, errors } = error as { code?: unknown; message?: unknown; errors?: unknown };
  // Happy eyeballs: one error for each address that was tried.
  if (typeof code !== 'string' && Array.isArray(errors)) return describe(errors[0]);
  return { code: typeof code === 'string' ? code : undefined, message: String(message) };
}

/**
 * Whether the proxy of `http.proxy` would refuse again: a 4xx would come back, a wrong password may lock the account, and
 * its certificate stays the same. A proxy that cannot be reached or answers 5xx may recover, and the end of an idle tunnel
 * is no refusal.
 */
export function isProxyRefusal({ kind, reason = '' }: { kind: string; reason?: string }): boolean {
  return (
    kind === 'proxy' &&
    !/_(5\d\d|ENDED|TIMEOUT|ECONN\w+|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_\w+|E\w+UNREACH)$/.test(reason)
  );
}
