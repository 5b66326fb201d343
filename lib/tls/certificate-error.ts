import { ServiceCertificateError, type CertificateSummary, type DescribeOption } from '../errors/index.js';
import { formatDate, describeCertificate } from './certificate-summary.js';

/** The error for a client certificate that a server refused or missed. `reason` is the code of the TLS alert or of OpenSSL. */
export function certificateRefusedError(
  certificate: CertificateSummary | undefined,
  reason: string | undefined,
  describeOption: DescribeOption,
): ServiceCertificateError {
  const because = reason ? ` (${reason})` : '';
  const { message, hint, options } = certificate
    ? refused(certificate, because, describeOption)
    : missing(because, describeOption);
  const details = { code: 'certificate_refused', certificate, message, hint, options } as const;
  return new ServiceCertificateError([{ option: 'tls.certificate', message: `${message} ${hint}` }], details);
}

function refused(certificate: CertificateSummary, because: string, describeOption: DescribeOption) {
  const { issuer, validFrom, validTo } = certificate;
  const hasExpired = validTo.getTime() <= Date.now();
  return {
    message: `The server refused the client certificate: ${describeCertificate(certificate)}, issued by "${issuer}", valid from ${formatDate(validFrom)} to ${formatDate(validTo)}${because}.${hasExpired ? ' It has expired.' : ''}`,
    hint: `${hasExpired ? 'Generate another one in the developer portal. ' : ''}In the developer portal, compare the certificate that is listed for this application and this environment with ${describeOption('tls.certificate')}: the sandbox and production have certificates of their own, and a revoked one does not come back. Check that the address is of the same environment, and this machine's clock.`,
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
