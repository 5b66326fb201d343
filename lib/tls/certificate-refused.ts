import { ServiceCertificateError, type CertificateSummary } from '../errors/index.js';
import { formatDate, describeCertificate } from './certificate-summary.js';

/**
 * The error for a refused or missing certificate (code `certificate_refused`). It names subject, fingerprint and dates of
 * the certificate in use, and what to check. `reason` is the code of the TLS alert or of OpenSSL.
 */
export function certificateRefusedError(
  certificate: CertificateSummary | undefined,
  reason?: string,
): ServiceCertificateError {
  const because = reason ? ` (${reason})` : '';
  const message = certificate
    ? `the server refused the certificate ${describeCertificate(certificate)}, issued by "${certificate.issuer}", valid from ${formatDate(certificate.validFrom)} to ${formatDate(certificate.validTo)}${because}. ${expiredHint(certificate)}Check in the developer portal that it is listed for this application, belongs to this environment (sandbox and production have certificates of their own) and was not revoked.`
    : `the server asks for a client certificate and none is set${because}. Set tls.certificate and tls.privateKey from the developer portal's authentication section, or use an address that does not ask for one.`;
  return new ServiceCertificateError([{ option: 'tls.certificate', message }], {
    code: 'certificate_refused',
    certificate,
  });
}

function expiredHint({ validTo }: CertificateSummary): string {
  return validTo.getTime() < Date.now()
    ? 'It has expired: generate another one in the developer portal. '
    : '';
}
