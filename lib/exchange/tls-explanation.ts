const CAUSES: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for another host name",
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  CERT_NOT_YET_VALID: "the server's certificate is not valid yet",
  CERT_REVOKED: "the server's certificate was revoked",
  INVALID_PURPOSE: "the server's certificate is not for servers",
  UNSPECIFIED:
    "the server's certificate breaks a rule of its chain: a name constraint, a weak key or signature",
};

// OpenSSL's verification codes as Node spells them.
const UNTRUSTED = /^(UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_|CRL_|INVALID_CA)/;

/** OpenSSL's versions spell this alert differently (RFC 8446, 6.2: handshake_failure). */
export const HANDSHAKE_FAILURE = 'TLS_ALERT_40';

/** Why a server's certificate did not pass, by the reason of a fault; undefined where it is not about that. */
export function explainServerCertificate(reason: string): string | undefined {
  return CAUSES[reason];
}

/** Whether it is the trust anchor that does not fit. */
export function isUntrusted(reason: string): boolean {
  return CAUSES[reason] === undefined && UNTRUSTED.test(reason);
}
