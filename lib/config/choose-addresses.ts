import { type ConfigurationFault } from '../errors/index.js';
import { addressFault, originOf, withoutSlashes } from './address.js';
import { quoteSetting, type Mode } from './mode.js';
import { type Addresses, type ChainNeed } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

type UrlOption = keyof ServiceUrls;

export interface AddressChoice extends Pick<Addresses, 'certificateFor'> {
  /** Absent if a required address is missing or not valid. */
  addresses?: Addresses;
  needsChain?: ChainNeed;
  faults: ConfigurationFault[];
}

/** Chooses the addresses for a mode, as docs/service.md#addresses lists them. */
export function chooseAddresses(mode: Mode): AddressChoice {
  const { environment, authentication, bindsTokens, wantsOAuth } = mode;
  const isProduction = environment === 'production';
  const { urls = {} } = mode.given;
  const apiUrlOption = apiAddress(mode, urls);
  const tokenUrlOption = isProduction ? 'authUrl' : 'sandboxAuthUrl';
  const faults = [
    ...(urls[apiUrlOption] ? [] : [missingAddress(mode, apiUrlOption, 'API calls go there')]),
    ...(urls[tokenUrlOption] || !wantsOAuth
      ? []
      : [missingAddress(mode, tokenUrlOption, 'token requests go there')]),
  ];
  const isPlain = (key: UrlOption) => normalized(urls[key])?.startsWith('http:') === true;
  const isBound = bindsTokens && !isPlain(tokenUrlOption);
  const certificateFor =
    authentication === 'mtls' && !isPlain(apiUrlOption) ? 'mtls' : isBound ? 'oauth.mtls' : undefined;
  // Only the addresses of this environment, so that credentials of one environment are never sent to the other.
  const own = isProduction ? [urls.baseUrl, urls.oauthBaseUrl] : [urls.sandboxUrl, urls.sandboxMtlsUrl];
  const origins = new Set(own.flatMap((address) => originOf(address) ?? []));
  // The API's address may be a sidecar on plain http, but a call by absolute URL can still go to another origin over https.
  const showsCertificate = isBound || [...origins].some((origin) => origin.startsWith('https:'));
  const needsChain = showsCertificate ? (isProduction ? 'required' : 'advised') : undefined;
  const baseUrl = normalized(urls[apiUrlOption]);
  if (baseUrl === undefined || faults.length > 0) return { faults, certificateFor, needsChain };
  const addresses: Addresses = {
    baseUrl,
    origins,
    baseOption: `urls.${apiUrlOption}`,
    ...(wantsOAuth && {
      tokenUrl: `${normalized(urls[tokenUrlOption])}/oauth2/token`,
      tokenOption: `urls.${tokenUrlOption}`,
    }),
    certificateFor,
  };
  return { faults, certificateFor, needsChain, addresses };
}

function apiAddress({ environment, authentication, hasCertificate }: Mode, urls: ServiceUrls): UrlOption {
  if (environment === 'production')
    return authentication === 'oauth' && urls.oauthBaseUrl ? 'oauthBaseUrl' : 'baseUrl';
  if (authentication === 'mtls') return 'sandboxMtlsUrl';
  return authentication === 'oauth' && hasCertificate ? 'sandboxMtlsUrl' : 'sandboxUrl';
}

function missingAddress(mode: Mode, key: UrlOption, use: string): ConfigurationFault {
  const where = `environment ${quoteSetting('environment', mode)} and authentication ${quoteSetting('authentication', mode)}`;
  return { option: `urls.${key}`, message: `is missing: with ${where}, ${use}.`, isMissing: true };
}

/** The address without trailing slashes, ready to append a path. Undefined if the address is not valid. */
function normalized(address: unknown): string | undefined {
  if (addressFault(address) !== undefined) return undefined;
  const url = new URL(address as string);
  return url.origin + withoutSlashes(url.pathname);
}
