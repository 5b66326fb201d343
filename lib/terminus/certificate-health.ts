import { type IdentityStatus } from '../tls/client-identity.js';

/** Why the certificates that are sent are not good enough; undefined if they are. */
export function certificateFault(
  { healthy, daysLeft = Infinity }: IdentityStatus,
  minDays: number,
): string | undefined {
  if (!healthy) return 'The client certificate, or one that is sent with it, has expired.';
  if (daysLeft >= minDays) return undefined;
  return `The client certificate, or one that is sent with it, expires in ${daysLeft} days, and there should be ${minDays} left.`;
}

/** Without subject, paths and messages: who asks for a health may be anybody. */
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
