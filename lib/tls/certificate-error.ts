import {
  ServiceCertificateError,
  type CertificateSummary,
  type DescribeOption,
  fillExplanation,
} from '../errors/index.js';
import { formatDate } from '../time/time.js';
import { describeCertificate, isUnsupportedInTls13 } from './certificate-summary.js';

/**
 * A hint for a server that refused the chain that we send. A server that trusts only a root certificate needs all intermediate
 * certificates from the client.
 */
export function missingIssuerHint(lastIssuer: string): string {
  return `If that is right, the server may lack the certificate of "${lastIssuer}": put it after ours in tls.certificate.`;
}

/**
 * Why a server got no certificate although one is configured. OpenSSL omits the certificate, without an error, if the server's list
 * of signature algorithms has none for the type of its key.
 */
export function notSentReason(keyType?: string): string {
  return `was not sent, or did not arrive: the server accepts no key of this type${keyType ? ` (${keyType})` : ''}, or a proxy in front of it ended TLS`;
}

/** What to do about a certificate that was not sent. Options are in braces. */
export function notSentHint(keyType?: string): string {
  return isUnsupportedInTls13(keyType)
    ? `TLS 1.3 has no signature for such a key. Generate an RSA key or one on P-256 with its certificate in the developer portal, and put them into {tls.certificate} and {tls.privateKey}.`
    : `Ask the service's operator which types of keys the server accepts, and generate {tls.certificate} with such a key. If it has one, find out what ends TLS between this machine and the server.`;
}

/** Facts about a refused certificate, from which the error tells the likely cause. */
interface RefusedIdentity {
  /** The issuer of the last certificate that we send; undefined if that certificate is self-signed. */
  lastIssuer?: string;
  keyType?: string;
  /** Whether the refusal came after our side of the handshake had ended, which happens only over TLS 1.3. */
  isTls13?: boolean;
  /** Whether the server said that it got no certificate. */
  isReportedMissing?: boolean;
}

/**
 * The error for a client certificate that a server refused, or required and did not get.
 * @param reason the code of the TLS alert or of OpenSSL, or `HTTP` and a status
 */
export function certificateRefusedError(
  certificate: CertificateSummary | undefined,
  reason: string | undefined,
  describeOption: DescribeOption,
  identity: RefusedIdentity = {},
): ServiceCertificateError {
  const { lastIssuer, keyType, isTls13, isReportedMissing } = identity;
  const because = reason ? ` (${reason})` : '';
  const isUnsent =
    isReportedMissing === true ||
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
    hint: `${hasExpired ? 'Generate a new one in the developer portal. ' : ''}In the developer portal, compare the certificate that is listed for this application and this environment with ${describeOption('tls.certificate')}: the sandbox and production have separate certificates, and a revoked certificate stays revoked. Also check that the address belongs to the same environment, and check this machine's clock.${lastIssuer === undefined ? '' : ` ${missingIssuerHint(lastIssuer)}`}`,
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
