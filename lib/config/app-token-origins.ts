import { type DescribeOption } from '../errors/index.js';
import { originOf } from './address.js';
import { type Mode } from './requirements.js';
import { type Addresses } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

/**
 * The origins whose calls carry the app token. Beside a bearer, those are by default the addresses for mutual TLS that
 * see the client certificate: each mTLS call carries the app token too (specification, 5.2.5).
 * @param withBearer `sendAppTokenWithBearer`
 */
export function appTokenOrigins(
  { authentication, environment, hasCertificate }: Mode,
  { baseUrl, sandboxMtlsUrl }: ServiceUrls,
  chosen: Pick<Addresses, 'baseUrl' | 'baseOption' | 'origins'>,
  withBearer: boolean | undefined,
): ReadonlySet<string> {
  if (authentication !== 'oauth') return chosen.origins;
  if (withBearer !== undefined) return withBearer ? chosen.origins : new Set();
  const mutual = environment === 'production' ? originOf(baseUrl) : originOf(sandboxMtlsUrl);
  // A sidecar has the client certificate, if there is one.
  if (!hasCertificate || !mutual?.startsWith('https:')) return new Set();
  const isChosen = chosen.baseOption !== 'urls.oauthBaseUrl';
  return isChosen || mutual !== new URL(chosen.baseUrl).origin ? new Set([mutual]) : new Set();
}

/** What to do where such a call has no app token to carry; undefined where it has one, or needs none. */
export function missingAppToken(
  { authentication, given }: Mode,
  { baseUrl, appTokenOrigins: origins }: Addresses,
  describe: DescribeOption,
): string | undefined {
  if (authentication !== 'oauth' || given.appToken !== undefined || !origins.has(new URL(baseUrl).origin))
    return undefined;
  return `is not set, and calls over mutual TLS are to carry it beside the bearer (specification, 5.2.5). Set it; or set ${describe('sendAppTokenWithBearer')} to false, where the service takes the bearer alone.`;
}
