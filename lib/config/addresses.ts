import { type ConfigurationFault } from '../errors/index.js';
import { addressFault, normalizeAddress } from './address.js';
import { type ServiceAuthentication, type ServiceEnvironment } from './options.js';
import { type Addresses } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

export interface AddressChoice {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  hasCertificate: boolean;
  needsToken: boolean;
  urls: ServiceUrls;
}

/** Which of the six addresses a mode uses: design "Options", specification 5.2.6 and 9.2. */
export function chooseAddresses(choice: AddressChoice): {
  addresses?: Addresses;
  faults: ConfigurationFault[];
} {
  const { urls } = choice;
  const apiKey = apiAddress(choice);
  const tokenKey = choice.environment === 'production' ? 'authUrl' : 'sandboxAuthUrl';
  const needed: (keyof ServiceUrls)[] = choice.needsToken ? [apiKey, tokenKey] : [apiKey];
  const faults = needed
    .filter((key) => !urls[key])
    .map((key) => ({ option: `urls.${key}`, message: missing(key, choice) }));
  const base = usable(urls[apiKey]);
  if (base === undefined || faults.length > 0) return { faults };
  const token = choice.needsToken ? usable(urls[tokenKey]) : undefined;
  return {
    faults,
    addresses: {
      baseUrl: base,
      origins: ownOrigins(choice),
      tokenUrl: token && `${token}/oauth2/token`,
      deprecated: apiKey === 'oauthBaseUrl',
    },
  };
}

function apiAddress({ environment, authentication, hasCertificate, urls }: AddressChoice): keyof ServiceUrls {
  if (environment === 'production')
    return authentication === 'oauth' && urls.oauthBaseUrl ? 'oauthBaseUrl' : 'baseUrl';
  if (authentication === 'mtls') return 'sandboxMtlsUrl';
  return authentication === 'oauth' && hasCertificate ? 'sandboxMtlsUrl' : 'sandboxUrl';
}

/** The API's addresses in this environment: a credential of one environment never goes to the other. */
function ownOrigins({ environment, urls }: AddressChoice): ReadonlySet<string> {
  const own =
    environment === 'production' ? [urls.baseUrl, urls.oauthBaseUrl] : [urls.sandboxUrl, urls.sandboxMtlsUrl];
  return new Set(
    own.flatMap((address) => (usable(address) === undefined ? [] : [new URL(address as string).origin])),
  );
}

function usable(address: unknown): string | undefined {
  return typeof address === 'string' && addressFault(address) === undefined
    ? normalizeAddress(address)
    : undefined;
}

function missing(key: keyof ServiceUrls, { environment, authentication }: AddressChoice): string {
  const use =
    key === 'authUrl' || key === 'sandboxAuthUrl' ? 'OAuth tokens are asked for there' : 'calls go there';
  return `is missing: with environment '${environment}' and authentication '${authentication}' ${use}.`;
}
