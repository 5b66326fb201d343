import { type X509Certificate } from 'node:crypto';
import { DAY_MS } from '../time/clock.js';
import { type CertificateSummary } from '../errors/index.js';

/** The log and the doctor warn of a certificate in its last 30 days, or in the last third of its lifetime if that is under 90 days. */
const WARNING_MS = 30 * DAY_MS;
const MAX_NAME = 160;

/** Whole days until a certificate expires; negative if it has expired. */
export function daysLeft({ validTo }: Pick<CertificateSummary, 'validTo'>, now: number): number {
  return Math.floor((validTo.getTime() - now) / DAY_MS);
}

/** Whether a certificate expires soon, or has expired. */
export function isDueForRenewal({ validFrom, validTo }: CertificateSummary, now: number): boolean {
  const [from, to] = [validFrom.getTime(), validTo.getTime()];
  return to - now < Math.min(WARNING_MS, (to - from) / 3);
}

/** The public facts of a certificate, as plain data. */
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

/** A name for a certificate without a subject, as SPIFFE and some public authorities issue them. */
function alternativeName({ subjectAltName, serialNumber }: X509Certificate): string {
  return subjectAltName?.slice(0, MAX_NAME) ?? `serial number ${serialNumber}`;
}

// Node puts each attribute of a name in a line of its own. In some versions, an empty name is undefined.
function joinLines(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}
