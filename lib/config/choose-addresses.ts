import { type ConfigurationFault } from '../errors/index.js';
import { addressFault, originOf, withoutSlashes } from './address.js';
import { nameOf, type Mode } from './mode.js';
import { type Addresses, type ChainNeed } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

type UrlKey = keyof ServiceUrls;

interface Choice extends Pick<Addresses, 'certificateFor'> {
  addresses?: Addresses;
  needsChain?: ChainNeed;
  faults: ConfigurationFault[];
}

/**
 * Chooses the addresses that a mode uses: docs/service.md#addresses. Without `addresses`, one is missing or not valid, or
 * the mode is not known.
 */
export function chooseAddresses(mode: Mode): Choice {
  const urls = mode.given.urls ?? {};
  const apiKey = apiAddress(mode, urls);
  const tokenKey = mode.wantsOAuth ? tokenAddress(mode) : undefined;
  const needed = [apiKey, tokenKey].filter((key) => key !== undefined);
  const faults = needed.flatMap((key) =>
    urls[key] ? [] : [{ option: `urls.${key}`, message: missing(mode, key === tokenKey), isMissing: true }],
  );
  const isPlain = (key?: UrlKey) => key !== undefined && normalized(urls[key])?.startsWith('http:') === true;
  const certificateFor =
    mode.authentication === 'mtls' && !isPlain(apiKey)
      ? 'mtls'
      : mode.bindsTokens && !isPlain(tokenKey)
        ? 'oauth.mtls'
        : undefined;
  const origins = ownOrigins(mode, urls);
  // A call can reach each of them by its URL, even if the configured address is a sidecar's.
  const isShown =
    [...origins].some((origin) => origin.startsWith('https:')) || (mode.bindsTokens && !isPlain(tokenKey));
  const needsChain = isShown ? (mode.environment === 'production' ? 'required' : 'advised') : undefined;
  const baseUrl = apiKey && normalized(urls[apiKey]);
  if (baseUrl === undefined || faults.length > 0) return { faults, certificateFor, needsChain };
  const token = tokenKey && normalized(urls[tokenKey]);
  const addresses: Addresses = {
    baseUrl,
    origins,
    baseOption: `urls.${apiKey}`,
    tokenUrl: token && `${token}/oauth2/token`,
    tokenOption: tokenKey && `urls.${tokenKey}`,
    certificateFor,
  };
  return { faults, certificateFor, needsChain, addresses };
}

function apiAddress(
  { environment, authentication, hasCertificate }: Mode,
  urls: ServiceUrls,
): UrlKey | undefined {
  if (environment === undefined || authentication === undefined) return undefined;
  if (environment === 'production')
    return authentication === 'oauth' && urls.oauthBaseUrl ? 'oauthBaseUrl' : 'baseUrl';
  if (authentication === 'mtls') return 'sandboxMtlsUrl';
  if (authentication === 'app-token') return 'sandboxUrl';
  return hasCertificate === undefined ? undefined : hasCertificate ? 'sandboxMtlsUrl' : 'sandboxUrl';
}

function tokenAddress({ environment }: Mode): UrlKey | undefined {
  return environment && (environment === 'production' ? 'authUrl' : 'sandboxAuthUrl');
}

/** The API's addresses of this environment only. Credentials of one environment are never sent to the other. */
function ownOrigins({ environment }: Mode, urls: ServiceUrls): ReadonlySet<string> {
  const own =
    environment === 'production' ? [urls.baseUrl, urls.oauthBaseUrl] : [urls.sandboxUrl, urls.sandboxMtlsUrl];
  return new Set(own.flatMap((address) => originOf(address) ?? []));
}

function missing(mode: Mode, isTokenAddress: boolean): string {
  const use = isTokenAddress ? 'OAuth tokens come from there' : 'calls go there';
  const where = `environment ${nameOf('environment', mode)}${mode.authentication ? ` and authentication ${nameOf('authentication', mode)}` : ''}`;
  return `is missing: with ${where}, ${use}.`;
}

/** The address without slashes at its end, because paths are appended to it. Undefined if it is not valid. */
function normalized(address: unknown): string | undefined {
  if (addressFault(address) !== undefined) return undefined;
  const url = new URL(address as string);
  return url.origin + withoutSlashes(url.pathname);
}
