import { type IdentityStatus } from '../tls/identity-source.js';

/** Says why the health check fails because of the client certificate or its chain; undefined if it does not. */
export function certificateFault({ healthy, daysLeft }: IdentityStatus, minDays: number): string | undefined {
  const certificate = 'The client certificate, or a chain certificate that is sent with it,';
  const isEarly = daysLeft !== undefined && daysLeft >= 0;
  if (!healthy) return `${certificate} ${isEarly ? 'is not valid yet' : 'has expired'}.`;
  if (daysLeft === undefined || daysLeft >= minDays) return undefined;
  return `${certificate} expires in ${daysLeft} days. The health check requires ${minDays} (minCertificateDays).`;
}

/** Contains no subject, path or message, because health endpoints are often open to anybody. */
export function certificateDetails({
  certificate,
  daysLeft,
  lastReloadFault,
}: IdentityStatus): Record<string, unknown> {
  if (!certificate) return {};
  const fault = lastReloadFault && {
    at: lastReloadFault.at.toISOString(),
    options: [...new Set(lastReloadFault.faults.map(({ option }) => option))],
  };
  const dates = { validTo: certificate.validTo.toISOString(), daysLeft };
  return { certificate: { ...dates, ...(fault && { lastReloadFault: fault }) } };
}
