import { type ConfigurationFault } from '../errors/index.js';
import { addressFault, parseUrl, withoutSlashes } from './address.js';
import { type Mode } from './requirements.js';
import { type Addresses } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

interface ChosenAddresses {
  /** Absent where a needed address is missing or not valid, and where the mode is not known. */
  addresses?: Addresses;
  faults: ConfigurationFault[];
  warnings: ConfigurationFault[];
}

const RESERVED =
  'is a name for examples and tests (RFC 2606, RFC 6761). Outside of a test, put the real address here.';

/** Chooses the addresses that a mode uses: specification 5.2.6 and 9.2. */
export function chooseAddresses(mode: Mode, urls: ServiceUrls): ChosenAddresses {
  const apiKey = apiAddress(mode, urls);
  const tokenKey = mode.wantsOAuth ? tokenAddress(mode) : undefined;
  const needed = [apiKey, tokenKey].filter((key) => key !== undefined);
  const faults = needed
    .filter((key) => !urls[key])
    .map((key) => ({ option: `urls.${key}`, message: missing(mode, key === tokenKey) }));
  const warnings = needed.flatMap((key) =>
    [reservedHost(urls[key]), otherEnvironment(mode, urls, key)]
      .filter((message) => message !== undefined)
      .map((message) => ({ option: `urls.${key}`, message })),
  );
  const base = apiKey && normalized(urls[apiKey]);
  if (base === undefined || faults.length > 0) return { faults, warnings };
  const token = tokenKey && normalized(urls[tokenKey]);
  const addresses = {
    baseUrl: base,
    origins: ownOrigins(mode, urls),
    tokenUrl: token && `${token}/oauth2/token`,
    baseOption: `urls.${apiKey}`,
    tokenOption: tokenKey && `urls.${tokenKey}`,
    deprecated: apiKey === 'oauthBaseUrl',
  };
  return { faults, warnings, addresses };
}

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

/** The API's addresses of this environment only. Credentials of one environment are never sent to the other. */
function ownOrigins({ environment }: Mode, urls: ServiceUrls): ReadonlySet<string> {
  const own =
    environment === 'production' ? [urls.baseUrl, urls.oauthBaseUrl] : [urls.sandboxUrl, urls.sandboxMtlsUrl];
  const valid = own.map(normalized).filter((address) => address !== undefined);
  return new Set(valid.map((address) => new URL(address).origin));
}

function missing({ environment, authentication }: Mode, isTokenAddress: boolean): string {
  const use = isTokenAddress ? 'OAuth tokens come from there' : 'calls go there';
  const mode = `environment '${environment}'${authentication ? ` and authentication '${authentication}'` : ''}`;
  return `is missing: with ${mode}, ${use}.`;
}

/** The address without slashes at its end, because paths are appended to it. Undefined where it is not valid. */
function normalized(address: unknown): string | undefined {
  if (addressFault(address) !== undefined) return undefined;
  const url = new URL(address as string);
  return url.origin + withoutSlashes(url.pathname);
}

/** That the host of an address is a name that is reserved for examples and tests. */
function reservedHost(address: unknown): string | undefined {
  const host = parseUrl(address)?.hostname;
  return host && /(^|\.)(example(\.(com|net|org))?|invalid|test)$/.test(host)
    ? `${host} ${RESERVED}`
    : undefined;
}

const SANDBOX_NAME = /(^|[.-])(sandbox|sbx|staging|uat)([.-]|$)/;

/** That an address looks like one of the other environment, whose credentials and certificates are others. */
function otherEnvironment(
  { environment }: Mode,
  urls: ServiceUrls,
  key: keyof ServiceUrls,
): string | undefined {
  const own = parseUrl(urls[key]);
  if (!own) return undefined;
  const isProduction = environment === 'production';
  if (isProduction && SANDBOX_NAME.test(own.hostname)) {
    return `${own.hostname} looks like an address of the sandbox, and environment is 'production'.`;
  }
  const others = (Object.keys(urls) as (keyof ServiceUrls)[]).filter(
    (other) => other.startsWith('sandbox') === isProduction && parseUrl(urls[other])?.href === own.href,
  );
  return others.length > 0
    ? `is the same address as urls.${others[0]}, which is of the other environment.`
    : undefined;
}
