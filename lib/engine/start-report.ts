import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Log } from '../telemetry/log.js';
import { type Identity, type IdentityStatus } from '../tls/client-identity.js';

/** Logs one line about the client when the application has started, without secrets, and warns of probable mistakes. */
export function reportStart(
  options: ResolvedOptions,
  identity: Pick<Identity, 'status' | 'hasChain'>,
  log: Log,
): void {
  const { environment, authentication, addresses, oauth, appToken, linkSdk, describeOption } = options;
  log.log(
    `${environment}, ${authentication}: calls go to ${addresses.baseUrl}; ${describeIdentity(identity.status)}; ${describeTokens(options)}`,
  );
  if ((addresses.certificateFor === 'mtls' || identity.status.certificate) && !identity.hasChain) {
    log.warn(
      `${describeOption('tls.chain')} is not set: the service's certificate is verified against Node's ` +
        'public roots, not against the chain that the developer portal offers for download.',
    );
  }
  if (environment === 'production' && !oauth && appToken && !linkSdk.includeAppToken) {
    log.warn(
      'connectParameters() will send the app token to browsers, because there are no OAuth credentials: set ' +
        `${describeOption('oauth.clientId')} and ${describeOption('oauth.clientSecret')}, or ${describeOption('linkSdk.includeAppToken')} to true ` +
        'if that is intended.',
    );
  }
}

function describeIdentity({ certificate, daysLeft = 0 }: IdentityStatus): string {
  if (!certificate) return 'no client certificate';
  const left = daysLeft < 0 ? 'expired' : `${daysLeft} day${daysLeft === 1 ? '' : 's'} left`;
  return `client certificate "${certificate.subject}", ${left}`;
}

function describeTokens({ addresses, oauth, tokenStore }: ResolvedOptions): string {
  if (!oauth || addresses.tokenUrl === undefined) return 'no OAuth tokens';
  const kept = tokenStore ? 'shared through tokenStore' : 'kept in this process';
  return `tokens from ${new URL(addresses.tokenUrl).host}, ${kept}`;
}
