import { type ConfigurationFault } from '../errors/index.js';
import { addressFault, normalizeAddress, reservedHost } from './address.js';
import { type Mode } from './requirements.js';
import { type Addresses } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

export interface ChosenAddresses {
  /** Absent where an address is missing or malformed, or where the mode is not known. */
  addresses?: Addresses;
  faults: ConfigurationFault[];
  warnings: ConfigurationFault[];
}

/** Which of the six addresses a mode uses: design "Options", specification 5.2.6 and 9.2. */
export function chooseAddresses(mode: Mode, urls: ServiceUrls): ChosenAddresses {
  const apiKey = apiAddress(mode, urls);
  const tokenKey = mode.wantsOAuth ? tokenAddress(mode) : undefined;
  const needed = [apiKey, tokenKey].filter((key) => key !== undefined);
  const faults = needed
    .filter((key) => !urls[key])
    .map((key) => ({ option: `urls.${key}`, message: missing(key, mode) }));
  const warnings = needed.flatMap((key) => {
    const host = reservedHost(urls[key]);
    return host ? [{ option: `urls.${key}`, message: `${host} ${RESERVED}` }] : [];
  });
  const base = apiKey && usable(urls[apiKey]);
  if (base === undefined || faults.length > 0) return { faults, warnings };
  const token = tokenKey && usable(urls[tokenKey]);
  return {
    faults,
    warnings,
    addresses: {
      baseUrl: base,
      origins: ownOrigins(mode, urls),
      tokenUrl: token && `${token}/oauth2/token`,
      deprecated: apiKey === 'oauthBaseUrl',
    },
  };
}

const RESERVED =
  'is a name for examples and tests (RFC 2606, RFC 6761): outside of a test, put the real address there.';

function apiAddress(
  { environment, authentication, hasCertificate }: Mode,
  urls: ServiceUrls,
): keyof ServiceUrls | undefined {
  if (environment === undefined || authentication === undefined) return undefined;
  if (environment === 'production')
    return authentication === 'oauth' && urls.oauthBaseUrl ? 'oauthBaseUrl' : 'baseUrl';
  if (authentication === 'mtls') return 'sandboxMtlsUrl';
  if (authentication === 'app-token') return 'sandboxUrl';
  return hasCertificate === undefined ? undefined : hasCertificate ? 'sandboxMtlsUrl' : 'sandboxUrl';
}

function tokenAddress({ environment }: Mode): keyof ServiceUrls | undefined {
  return environment && (environment === 'production' ? 'authUrl' : 'sandboxAuthUrl');
}

/** The API's addresses in this environment: a credential of one environment never goes to the other. */
function ownOrigins({ environment }: Mode, urls: ServiceUrls): ReadonlySet<string> {
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

function missing(key: keyof ServiceUrls, { environment, authentication }: Mode): string {
  const use =
    key === 'authUrl' || key === 'sandboxAuthUrl' ? 'OAuth tokens are asked for there' : 'calls go there';
  return `is missing: with environment '${environment}'${authentication ? ` and authentication '${authentication}'` : ''} ${use}.`;
}
