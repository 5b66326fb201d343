import { type ConfigurationFault } from '../errors/index.js';
import { addressFault, originOf, withoutSlashes } from './address.js';
import { nameOf, type Mode } from './mode.js';
import { type Addresses, type ChainNeed } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

type UrlKey = keyof ServiceUrls;

export interface Choice extends Pick<Addresses, 'certificateFor'> {
  /** Absent if one is missing or not valid. */
  addresses?: Addresses;
  needsChain?: ChainNeed;
  faults: ConfigurationFault[];
}

/** Chooses the addresses that a mode uses: docs/service.md#addresses. */
export function chooseAddresses(mode: Mode): Choice {
  const { environment, authentication, bindsTokens, wantsOAuth } = mode;
  const isProduction = environment === 'production';
  const { urls = {} } = mode.given;
  const apiKey = apiAddress(mode, urls);
  const tokenKey = isProduction ? 'authUrl' : 'sandboxAuthUrl';
  const faults = [
    ...(urls[apiKey] ? [] : [missing(mode, apiKey, 'calls go there')]),
    ...(urls[tokenKey] || !wantsOAuth ? [] : [missing(mode, tokenKey, 'OAuth tokens come from there')]),
  ];
  const isPlain = (key: UrlKey) => normalized(urls[key])?.startsWith('http:') === true;
  const isBound = bindsTokens && !isPlain(tokenKey);
  const certificateFor =
    authentication === 'mtls' && !isPlain(apiKey) ? 'mtls' : isBound ? 'oauth.mtls' : undefined;
  // Those of this environment only: credentials of one environment are never sent to the other.
  const own = isProduction ? [urls.baseUrl, urls.oauthBaseUrl] : [urls.sandboxUrl, urls.sandboxMtlsUrl];
  const origins = new Set(own.flatMap((address) => originOf(address) ?? []));
  // A call can reach each of them by its URL, even if the configured address is a sidecar's.
  const isShown = isBound || [...origins].some((origin) => origin.startsWith('https:'));
  const needsChain = isShown ? (isProduction ? 'required' : 'advised') : undefined;
  const baseUrl = normalized(urls[apiKey]);
  if (baseUrl === undefined || faults.length > 0) return { faults, certificateFor, needsChain };
  const addresses: Addresses = {
    baseUrl,
    origins,
    baseOption: `urls.${apiKey}`,
    ...(wantsOAuth && {
      tokenUrl: `${normalized(urls[tokenKey])}/oauth2/token`,
      tokenOption: `urls.${tokenKey}`,
    }),
    certificateFor,
  };
  return { faults, certificateFor, needsChain, addresses };
}

function apiAddress({ environment, authentication, hasCertificate }: Mode, urls: ServiceUrls): UrlKey {
  if (environment === 'production')
    return authentication === 'oauth' && urls.oauthBaseUrl ? 'oauthBaseUrl' : 'baseUrl';
  if (authentication === 'mtls') return 'sandboxMtlsUrl';
  return authentication === 'oauth' && hasCertificate ? 'sandboxMtlsUrl' : 'sandboxUrl';
}

function missing(mode: Mode, key: UrlKey, use: string): ConfigurationFault {
  const where = `environment ${nameOf('environment', mode)} and authentication ${nameOf('authentication', mode)}`;
  return { option: `urls.${key}`, message: `is missing: with ${where}, ${use}.`, isMissing: true };
}

/** The address without slashes at its end, because paths are appended to it. Undefined if it is not valid. */
function normalized(address: unknown): string | undefined {
  if (addressFault(address) !== undefined) return undefined;
  const url = new URL(address as string);
  return url.origin + withoutSlashes(url.pathname);
}
