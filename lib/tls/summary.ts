import { type X509Certificate } from 'node:crypto';
import { type CertificateSummary } from '../errors/index.js';

/** The public facts of a certificate; plain data. */
export function summarize(certificate: X509Certificate): CertificateSummary {
  return {
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    fingerprint256: certificate.fingerprint256,
    validFrom: new Date(certificate.validFrom),
    validTo: new Date(certificate.validTo),
  };
}

/** "CN=app, O=Example (SHA-256 AB:CD...)": enough to find it in the developer portal. */
export function describeCertificate({ subject, fingerprint256 }: CertificateSummary): string {
  return `"${subject}" (SHA-256 ${fingerprint256})`;
}

// Node gives one attribute a line; the name may be empty (undefined in some versions).
function oneLine(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}
