import { type X509Certificate } from 'node:crypto';
import { DAY_MS } from '../time/clock.js';
import { type CertificateSummary } from '../errors/index.js';

/** The days before a certificate's end on which the log warns of it. */
export const WARNING_DAYS = 30;

/** Whole days left; negative once it has expired. */
export function daysLeft({ validTo }: Pick<CertificateSummary, 'validTo'>, now: number): number {
  return Math.floor((validTo.getTime() - now) / DAY_MS);
}

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

// Node puts one attribute in each line. An empty name is undefined in some versions.
function oneLine(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}
