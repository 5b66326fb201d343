import {
  ServiceCertificateError,
  type CertificateSummary,
  type DescribeOption,
  fillExplanation,
} from '../errors/index.js';
import { formatDate } from '../time/clock.js';
import { describeCertificate } from './certificate-summary.js';
import { isUnsupportedInTls13 } from './material/key-type.js';

/** Of the last certificate that we send. A server that knows its own root alone misses what is between. */
export function missingIssuerHint(lastIssuer: string): string {
  return `If that is right, the server may lack the certificate of "${lastIssuer}": put it after ours in tls.certificate.`;
}

/**
 * Why a server says that it got no certificate though one is configured. OpenSSL leaves a certificate out, without an error,
 * if the server's list of signature algorithms has none for its key.
 */
export function notSentReason(keyType?: string): string {
  return `was not sent, or did not arrive: the server accepts no key of this type${keyType ? ` (${keyType})` : ''}, or a proxy in front of it ended TLS`;
}

/** What to do then. Options are in braces. */
export function notSentHint(keyType?: string): string {
  return isUnsupportedInTls13(keyType)
    ? `TLS 1.3 has no signature for such a key. Generate an RSA key or one on P-256 with its certificate in the developer portal, and put them into {tls.certificate} and {tls.privateKey}.`
    : `Ask the service's operator which types of keys the server accepts, and generate {tls.certificate} with such a key. If it has one, find out what ends TLS between this machine and the server.`;
}

/** What an error says of the certificate that was refused. */
export interface RefusedIdentity {
  /** Of the last certificate that we send; undefined if it signed itself. */
  lastIssuer?: string;
  keyType?: string;
  /** The refusal came after our side of the handshake had ended. That is so over TLS 1.3 alone. */
  isTls13?: boolean;
  /** The server said that it got none. */
  isReportedMissing?: boolean;
}

/** The error for a client certificate that a server refused or missed. `reason` is the code of the TLS alert or of OpenSSL. */
export function certificateRefusedError(
  certificate: CertificateSummary | undefined,
  reason: string | undefined,
  describeOption: DescribeOption,
  identity: RefusedIdentity = {},
): ServiceCertificateError {
  const { lastIssuer, keyType, isTls13, isReportedMissing: isMissed } = identity;
  const because = reason ? ` (${reason})` : '';
  const isUnsent =
    isMissed === true ||
    /CERTIFICATE_REQUIRED$/.test(reason ?? '') ||
    (isTls13 === true && isUnsupportedInTls13(keyType));
  const issuer = /UNKNOWN_CA|HTTP \d/.test(because) ? lastIssuer : undefined;
  const { message, hint, options } = !certificate
    ? explainMissing(because, describeOption)
    : isUnsent
      ? explainNotSent(certificate, because, describeOption, keyType)
      : explainRefused(certificate, because, describeOption, issuer);
  const details = { code: 'certificate_refused', certificate, message, hint, options } as const;
  return new ServiceCertificateError([{ option: 'tls.certificate', message: `${message} ${hint}` }], details);
}

function explainRefused(
  certificate: CertificateSummary,
  because: string,
  describeOption: DescribeOption,
  lastIssuer?: string,
) {
  const { issuer, validFrom, validTo } = certificate;
  const hasExpired = validTo.getTime() <= Date.now();
  return {
    message: `The server refused the client certificate: ${describeCertificate(certificate)}, issued by "${issuer}", valid from ${formatDate(validFrom)} to ${formatDate(validTo)}${because}.${hasExpired ? ' It has expired.' : ''}`,
    hint: `${hasExpired ? 'Generate another one in the developer portal. ' : ''}In the developer portal, compare the certificate that is listed for this application and this environment with ${describeOption('tls.certificate')}: the sandbox and production have certificates of their own, and a revoked one does not come back. Check that the address is of the same environment, and this machine's clock.${lastIssuer === undefined ? '' : ` ${missingIssuerHint(lastIssuer)}`}`,
    options: ['tls.certificate'],
  };
}

function explainNotSent(
  certificate: CertificateSummary,
  because: string,
  describeOption: DescribeOption,
  keyType?: string,
) {
  return fillExplanation(
    `The client certificate ${notSentReason(keyType)}. It is {certificate}{because}.`,
    { hint: notSentHint(keyType) },
    { because, certificate: describeCertificate(certificate) },
    { option: 'tls.certificate', describeOption },
  );
}

function explainMissing(because: string, describeOption: DescribeOption) {
  return {
    message: `The server asks for a client certificate and none is offered${because}.`,
    hint: `Set ${describeOption('tls.certificate')} and ${describeOption('tls.privateKey')} from the developer portal's authentication section, or use an address that does not ask for one.`,
    options: ['tls.certificate', 'tls.privateKey'],
  };
}
