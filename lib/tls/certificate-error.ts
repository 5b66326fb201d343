import { ServiceCertificateError, type CertificateSummary, type DescribeOption } from '../errors/index.js';
import { formatDate } from '../time/clock.js';
import { describeCertificate } from './certificate-summary.js';

/** Of the last certificate that we send. A server that knows its own root alone misses what is between. */
export function ofIssuer(lastIssuer: string): string {
  return `If that is right, the server may lack the certificate of "${lastIssuer}": put it after ours in tls.certificate.`;
}

/**
 * The error for a client certificate that a server refused or missed. `reason` is the code of the TLS alert or of OpenSSL.
 * @param lastIssuer of the last certificate that we send; undefined if it is its own
 */
export function certificateRefusedError(
  certificate: CertificateSummary | undefined,
  reason: string | undefined,
  describeOption: DescribeOption,
  lastIssuer?: string,
): ServiceCertificateError {
  const because = reason ? ` (${reason})` : '';
  const { message, hint, options } = certificate
    ? refused(
        certificate,
        because,
        describeOption,
        /UNKNOWN_CA|HTTP \d/.test(because) ? lastIssuer : undefined,
      )
    : missing(because, describeOption);
  const details = { code: 'certificate_refused', certificate, message, hint, options } as const;
  return new ServiceCertificateError([{ option: 'tls.certificate', message: `${message} ${hint}` }], details);
}

function refused(
  certificate: CertificateSummary,
  because: string,
  describeOption: DescribeOption,
  lastIssuer?: string,
) {
  const { issuer, validFrom, validTo } = certificate;
  const hasExpired = validTo.getTime() <= Date.now();
  return {
    message: `The server refused the client certificate: ${describeCertificate(certificate)}, issued by "${issuer}", valid from ${formatDate(validFrom)} to ${formatDate(validTo)}${because}.${hasExpired ? ' It has expired.' : ''}`,
    hint: `${hasExpired ? 'Generate another one in the developer portal. ' : ''}In the developer portal, compare the certificate that is listed for this application and this environment with ${describeOption('tls.certificate')}: the sandbox and production have certificates of their own, and a revoked one does not come back. Check that the address is of the same environment, and this machine's clock.${lastIssuer === undefined ? '' : ` ${ofIssuer(lastIssuer)}`}`,
    options: ['tls.certificate'],
  };
}

function missing(because: string, describeOption: DescribeOption) {
  return {
    message: `The server asks for a client certificate and none is offered${because}.`,
    hint: `Set ${describeOption('tls.certificate')} and ${describeOption('tls.privateKey')} from the developer portal's authentication section, or use an address that does not ask for one.`,
    options: ['tls.certificate', 'tls.privateKey'],
  };
}
