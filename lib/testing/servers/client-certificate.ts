import { createCipheriv, createHmac } from 'node:crypto';
import { type Socket } from 'node:net';
import { type TLSSocket } from 'node:tls';
import { summarize } from '../../tls/certificate-summary.js';
import { type RecordedRequest } from '../request-log.js';

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

/** The alerts with which servers refuse a client certificate (RFC 8446, 6.2). */
export type TlsAlert =
  | 'handshake_failure'
  | 'bad_certificate'
  | 'unsupported_certificate'
  | 'certificate_revoked'
  | 'certificate_expired'
  | 'certificate_unknown'
  | 'unknown_ca'
  | 'access_denied'
  | 'certificate_required';

export const TLS_ALERTS: Readonly<Record<TlsAlert, number>> = {
  handshake_failure: 40,
  bad_certificate: 42,
  unsupported_certificate: 43,
  certificate_revoked: 44,
  certificate_expired: 45,
  certificate_unknown: 46,
  unknown_ca: 48,
  access_denied: 49,
  certificate_required: 116,
};

const FATAL = 2;
const ALERT_CONTENT = 21;
const APPLICATION_DATA = 23;
const TAG_LENGTH = 16;
/** How long the client has to close the connection after the alert, before the server does it. */
const LINGER_MS = 1_000;

const CIPHERS = {
  TLS_AES_128_GCM_SHA256: { cipher: 'aes-128-gcm', hash: 'sha256', keyLength: 16 },
  TLS_AES_256_GCM_SHA384: { cipher: 'aes-256-gcm', hash: 'sha384', keyLength: 32 },
  TLS_CHACHA20_POLY1305_SHA256: { cipher: 'chacha20-poly1305', hash: 'sha256', keyLength: 32 },
} as const;

/**
 * Ends a connection with a fatal alert, as real TLS servers do when they refuse a client certificate. Node has no way to
 * send an alert: its server only closes the socket. So this function makes the encrypted record (RFC 8446, 5.2 and 7.3) and
 * writes it to the TCP socket.
 *
 * The record must be the first one under its key, before any session ticket, so call this within the `secureConnection`
 * event. On TLS 1.2, or if the secret is unknown, the connection is only closed.
 *
 * @param trafficSecret SERVER_TRAFFIC_SECRET_0 of the connection, from the server's `keylog` event
 */
export function sendTlsAlert(
  tls: TLSSocket,
  raw: Socket,
  alert: TlsAlert,
  trafficSecret: Buffer | undefined,
): void {
  const name = tls.getCipher().name;
  if (trafficSecret === undefined || !(name in CIPHERS)) {
    raw.destroy();
    return;
  }
  const suite = CIPHERS[name as keyof typeof CIPHERS];
  const key = expandLabel(suite.hash, trafficSecret, 'key', suite.keyLength);
  const nonce = expandLabel(suite.hash, trafficSecret, 'iv', 12);
  const content = Buffer.from([FATAL, TLS_ALERTS[alert], ALERT_CONTENT]);
  const header = Buffer.from([APPLICATION_DATA, 3, 3, 0, content.length + TAG_LENGTH]);
  const encryption = createCipheriv(suite.cipher as 'aes-128-gcm', key, nonce, { authTagLength: TAG_LENGTH });
  encryption.setAAD(header, { plaintextLength: content.length });
  const record = [header, encryption.update(content), encryption.final(), encryption.getAuthTag()];

  raw.end(Buffer.concat(record));
  const timer = setTimeout(() => raw.destroy(), LINGER_MS).unref();
  raw.once('close', () => clearTimeout(timer));
}

/** HKDF-Expand-Label with an empty context (RFC 8446, 7.1), for lengths of at most one block. */
export function expandLabel(hash: string, secret: Buffer, label: string, length: number): Buffer {
  const full = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, length, full.length]), full, Buffer.from([0, 1])]);
  return createHmac(hash, secret).update(info).digest().subarray(0, length);
}
