import { type X509Certificate } from 'node:crypto';
import { DAY_MS } from '../time/clock.js';
import { type CertificateSummary } from '../errors/index.js';

/** The log and the doctor warn of a certificate in its last 30 days, and in the last third of a life under 90 days. */
const WARNING_MS = 30 * DAY_MS;
const MAX_NAME = 160;

/** Whole days left; negative once it has expired. */
export function daysLeft({ validTo }: Pick<CertificateSummary, 'validTo'>, now: number): number {
  return Math.floor((validTo.getTime() - now) / DAY_MS);
}

/** Whether a certificate should be renewed by now, or has expired. */
export function isDueForRenewal({ validFrom, validTo }: CertificateSummary, now: number): boolean {
  const [from, to] = [validFrom.getTime(), validTo.getTime()];
  return to - now < Math.min(WARNING_MS, (to - from) / 3);
}

/** The public facts of a certificate; plain data. */
export function summarize(certificate: X509Certificate): CertificateSummary {
  return {
    subject: joinLines(certificate.subject) || alternativeName(certificate),
    issuer: joinLines(certificate.issuer),
    fingerprint256: certificate.fingerprint256,
    validFrom: new Date(certificate.validFrom),
    validTo: new Date(certificate.validTo),
  };
}

/** "CN=app, O=Example (SHA-256 AB:CD...)": enough to find it in the developer portal. */
export function describeCertificate({ subject, fingerprint256 }: CertificateSummary): string {
  return `"${subject}" (SHA-256 ${fingerprint256})`;
}

/** Certificates of SPIFFE and of some public authorities have no subject. */
function alternativeName({ subjectAltName, serialNumber }: X509Certificate): string {
  return subjectAltName?.slice(0, MAX_NAME) ?? `serial number ${serialNumber}`;
}

// Node puts one attribute in each line. An empty name is undefined in some versions.
function joinLines(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}
