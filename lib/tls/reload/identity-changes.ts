import { type CertificateSummary, type ConfigurationFault } from '../../errors/index.js';
import { formatDate, describeCertificate, isOtherCertificate } from '../certificate-summary.js';

/** The parts in which identities are compared. */
export interface IdentityParts {
  certificate?: CertificateSummary;
  /** SHA-256 fingerprints of the service's chain; absent where there is none. */
  chain?: readonly string[];
}

/**
 * A vault that returns less than before must not take away the certificate, nor change the trust anchor from the
 * service's chain to Node's public roots.
 */
export function lostParts(before: IdentityParts, after: IdentityParts): ConfigurationFault[] {
  const faults: ConfigurationFault[] = [];
  if (before.certificate && !after.certificate) faults.push(lost('tls.certificate'));
  if (before.chain && !after.chain) faults.push(lost('tls.chain'));
  return faults;
}

/** The log line for a new identity. */
export function describeChange(before: IdentityParts, after: IdentityParts): string {
  const { certificate } = after;
  if (certificate && isOtherCertificate(before.certificate, certificate)) {
    return `A new application certificate is in use: ${describeCertificate(certificate)}, valid until ${formatDate(certificate.validTo)}.`;
  }
  return before.chain?.join() === after.chain?.join()
    ? 'The identity was read anew; its certificates are the same.'
    : "The service's chain was renewed.";
}

function lost(option: string): ConfigurationFault {
  const message =
    'is missing: the tls function returned none, and there was one before. Look at its vault or store.';
  return { option, message };
}
