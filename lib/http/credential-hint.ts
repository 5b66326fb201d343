import { type ResolvedOptions } from '../config/resolved-options.js';
import { type CertificateSummary } from '../errors/index.js';
import { certificateVerdict } from '../exchange/certificate-refusal.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { describeCertificate } from '../tls/certificate-summary.js';

/** What calls are authenticated with, as far as an operator has to know it. */
export interface CredentialsInUse extends Pick<ResolvedOptions, 'authentication' | 'describeOption'> {
  /** The client certificate in use; undefined where none is set. */
  certificate: () => CertificateSummary | undefined;
}

/** Whether the service, or a proxy before it, refused our credentials or certificate: no caller's input changes that. */
export function isCredentialFault(response: ExchangeResponse): boolean {
  return response.status === 401 || response.status === 403 || certificateVerdict(response) === 'refused';
}

/** What to check where our credentials or certificate were refused; undefined for any other answer. */
export function credentialHint(
  response: ExchangeResponse,
  credentials: CredentialsInUse,
): string | undefined {
  const verdict = certificateVerdict(response);
  if (verdict === 'refused') {
    return `A proxy before the service misses or rejects the client certificate; ${checkCertificate(credentials)}`;
  }
  if (verdict === 'perhaps') {
    return `The answer is a page, not of the service itself: a proxy or firewall before it refused the call. A firewall may refuse the address of this machine, or something in the call: ask who runs it. Where a proxy looks at client certificates: ${checkCertificate(credentials)}`;
  }
  if (response.status === 401) return `The service refused the credentials: ${checkCredentials(credentials)}`;
  if (response.status === 403) {
    const may = 'check in the developer portal what the application may do';
    // An app token has no sign of its own for a wrong one, and its variable is checked sooner than the portal.
    return credentials.authentication === 'oauth'
      ? `The service does not allow this call: ${may}; ${checkCredentials(credentials)}`
      : `The service does not allow this call: ${checkCredentials(credentials)} If they are right, ${may}.`;
  }
  return undefined;
}

function checkCredentials(credentials: CredentialsInUse): string {
  const { authentication, describeOption } = credentials;
  if (authentication === 'oauth') {
    return 'check that OAuth is enabled for the application, and that the addresses of the API and of the token endpoint are of the same environment.';
  }
  const appToken = `check ${describeOption('appToken')}, that it is of this application and this environment.`;
  return authentication === 'mtls' ? `${appToken} Also ${checkCertificate(credentials)}` : appToken;
}

function checkCertificate({ certificate, describeOption }: CredentialsInUse): string {
  const inUse = certificate();
  const which = inUse ? `in use is ${describeCertificate(inUse)}` : 'none is set';
  return `check ${describeOption('tls.certificate')} and ${describeOption('tls.privateKey')}, that they are of this application and this environment; ${which}.`;
}
