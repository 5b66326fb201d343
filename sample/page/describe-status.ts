import { type ServicesInUse } from './services-in-use.js';

/** The status panel of the page. It contains nothing secret. */
export function describeStatus(services: ServicesInUse): object {
  const { environment, authentication, baseUrl, simulator, auth } = services;
  return {
    environment,
    authentication,
    address: simulator ? `${baseUrl} (${simulator})` : baseUrl,
    certificate: describeCertificate(auth),
    apiToken: describeApiToken(auth, authentication),
  };
}

function describeCertificate({ identityStatus }: ServicesInUse['auth']): string {
  const { certificate, daysLeft } = identityStatus;
  if (!certificate) return 'none in this mode';
  return `${certificate.subject.replaceAll('\n', ', ')}: ${daysLeft} days left`;
}

function describeApiToken({ apiTokenStatus }: ServicesInUse['auth'], authentication: string): string {
  if (authentication !== 'oauth') return 'not used in this mode';
  if (!apiTokenStatus) return 'none yet';
  const { issuedAt, expiresAt } = apiTokenStatus;
  return `valid, ${seconds(Date.now() - issuedAt.getTime())} old, ${seconds(expiresAt.getTime() - Date.now())} left`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
