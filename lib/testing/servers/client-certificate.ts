import { type TLSSocket } from 'node:tls';
import { summarize } from '../../tls/certificate-summary.js';
import { type RecordedRequest } from '../request-log.js';
import { type TlsAlert } from '../tls-alert.js';

/** The result of {@link checkClientCertificate}. */
export interface CertificateVerdict {
  state: 'absent' | 'trusted' | 'refused';
  /** The TLS alert to send if the certificate is refused, or if it is missing and required. */
  alert: TlsAlert;
  subject?: string;
  fingerprint256?: string;
}

const ALERTS: Readonly<Record<string, TlsAlert>> = {
  CERT_HAS_EXPIRED: 'certificate_expired',
  CERT_NOT_YET_VALID: 'bad_certificate',
  INVALID_PURPOSE: 'unsupported_certificate',
  UNABLE_TO_GET_ISSUER_CERT: 'unknown_ca',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unknown_ca',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unknown_ca',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'unknown_ca',
  SELF_SIGNED_CERT_IN_CHAIN: 'unknown_ca',
};

/** Checks the client certificate of a connection after the handshake. */
export function checkClientCertificate(socket: TLSSocket, revoked: ReadonlySet<string>): CertificateVerdict {
  const certificate = socket.getPeerX509Certificate();
  // This comes first, because Node reports `authorized` for a resumed TLS 1.3 session without a certificate.
  if (certificate === undefined) return { state: 'absent', alert: 'certificate_required' };
  const { subject, fingerprint256, validTo } = summarize(certificate);
  const known = { subject, fingerprint256 };
  if (revoked.has(fingerprint256)) return { state: 'refused', alert: 'certificate_revoked', ...known };
  // When a session is resumed, Node does not check the dates again.
  if (validTo.getTime() < Date.now()) {
    return { state: 'refused', alert: 'certificate_expired', ...known };
  }
  if (socket.authorized) return { state: 'trusted', alert: 'certificate_unknown', ...known };
  const code = String(socket.authorizationError);
  return { state: 'refused', alert: ALERTS[code] ?? 'certificate_unknown', ...known };
}

/** The `x5t#S256` thumbprint of the request's client certificate (RFC 8705, 3.1); undefined without a certificate. */
export function thumbprintOf(request: RecordedRequest): string | undefined {
  const fingerprint = request.certificateFingerprint256;
  return fingerprint && Buffer.from(fingerprint.replaceAll(':', ''), 'hex').toString('base64url');
}
