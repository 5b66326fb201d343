import { type ConfigurationFault, type DescribeOption } from '../errors/index.js';
import { originOf } from './address.js';
import { type Mode } from './mode.js';
import { type Addresses } from './resolved-options.js';

/**
 * The origins whose calls carry the app token. Beside a bearer, those are by default the addresses for mutual TLS that
 * see the client certificate: each mTLS call carries the app token too (specification, 5.2.5).
 */
export function appTokenOrigins(
  { authentication, environment, hasCertificate, given }: Mode,
  chosen: Pick<Addresses, 'baseUrl' | 'baseOption' | 'origins'>,
): ReadonlySet<string> {
  const { urls, sendAppTokenWithBearer: withBearer } = given;
  if (authentication !== 'oauth') return chosen.origins;
  if (withBearer !== undefined) return withBearer ? chosen.origins : new Set();
  const mutual = originOf(environment === 'production' ? urls?.baseUrl : urls?.sandboxMtlsUrl);
  // A sidecar has the client certificate, if there is one.
  if (!hasCertificate || !mutual?.startsWith('https:')) return new Set();
  const isChosen = chosen.baseOption !== 'urls.oauthBaseUrl';
  return isChosen || mutual !== new URL(chosen.baseUrl).origin ? new Set([mutual]) : new Set();
}

/** The fault if such calls have no app token to carry. */
export function missingAppToken(
  { authentication, given }: Mode,
  { baseUrl, appTokenOrigins: origins }: Addresses,
  describe: DescribeOption,
): ConfigurationFault[] {
  if (authentication !== 'oauth' || given.appToken !== undefined || !origins.has(new URL(baseUrl).origin))
    return [];
  const message = `is not set, and calls over mutual TLS are to carry it beside the bearer (specification, 5.2.5). Set it; or set ${describe('sendAppTokenWithBearer')} to false, if the service takes the bearer alone.`;
  return [{ option: 'appToken', message }];
}
