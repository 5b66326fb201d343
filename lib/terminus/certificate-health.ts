import { type IdentityStatus } from '../tls/client-identity.js';

/** Why the client certificate is not good enough; undefined if it is. */
export function certificateFault(
  { healthy, daysLeft = Infinity }: IdentityStatus,
  minDays: number,
): string | undefined {
  if (!healthy) return 'The client certificate has expired.';
  if (daysLeft >= minDays) return undefined;
  return `The client certificate expires in ${daysLeft} days, and there should be ${minDays} left.`;
}

/** Without subject, paths and messages: who asks for a health may be anybody. */
export function describeCertificate({
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
