import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Log } from '../exchange/io.js';
import { type Identity } from '../tls/client-identity.js';
import { isNeverSent } from '../tls/material/key-type.js';

/** Logs one line about the client when the application has started, without secrets, and warns of probable mistakes. */
export function reportStart(
  options: ResolvedOptions,
  identity: Pick<Identity, 'certificate' | 'status' | 'keyType' | 'lacksChain'>,
  log: Log,
): void {
  const { environment, authentication, addresses, describeOption } = options;
  const parts = [
    `${environment}, ${authentication}: calls go to ${addresses.baseUrl}${describeProxy(options, addresses.baseUrl)}`,
    describeIdentity(identity),
    describeTokens(options),
  ];
  log.log(parts.join('; '));
  if (addresses.baseOption === 'urls.oauthBaseUrl') {
    log.log(
      `Calls go to ${describeOption('urls.oauthBaseUrl')}, which will be deprecated; urls.baseUrl will replace it.`,
    );
  }
  if (isNeverSent(identity.keyType)) {
    log.warn(
      `${describeOption('tls.privateKey')} is of the type ${identity.keyType}, for which TLS 1.3 has no signature: a server that ` +
        'speaks TLS 1.3 gets no client certificate. Generate an RSA key or one on P-256 with its certificate in the developer portal.',
    );
  }
  if (!identity.lacksChain) return;
  log.warn(
    `${describeOption('tls.chain')} is not set: the service's certificate is verified against Node's ` +
      'public roots, not against the chain that the developer portal offers for download. With a client certificate, production ' +
      `does not start so; if public roots are meant, set ${describeOption('tls.publicRoots')} to true.`,
  );
}

function describeIdentity({ certificate, status }: Pick<Identity, 'certificate' | 'status'>): string {
  if (!certificate) return 'no client certificate';
  const { daysLeft = 0 } = status;
  const left = daysLeft < 0 ? 'expired' : `${daysLeft} day${daysLeft === 1 ? '' : 's'} left`;
  return `client certificate "${certificate.subject}", ${left}`;
}

/** The proxy's host, without the password that its URL may have. */
function describeProxy({ http }: ResolvedOptions, address: string): string {
  const proxy = http.proxyFor?.(address);
  return proxy ? ` through the proxy ${new URL(proxy.reveal()).host}` : '';
}

function describeTokens(options: ResolvedOptions): string {
  const { addresses, oauth, tokenStore } = options;
  if (!oauth || addresses.tokenUrl === undefined) return 'no OAuth tokens';
  const kept = tokenStore ? 'shared through tokenStore' : 'kept in this process';
  return `tokens from ${new URL(addresses.tokenUrl).host}${describeProxy(options, addresses.tokenUrl)}, ${kept}`;
}
