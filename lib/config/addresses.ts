import { isIPv4 } from 'node:net';
import { type ConfigurationFault } from '../errors/index.js';
import { type Mode } from './requirements.js';
import { type Addresses } from './resolved-options.js';
import { type ServiceUrls } from './urls.options.js';

export interface ChosenAddresses {
  /** Absent where an address is missing or malformed, or where the mode is not known. */
  addresses?: Addresses;
  faults: ConfigurationFault[];
  warnings: ConfigurationFault[];
}

const RESERVED =
  'is a name for examples and tests (RFC 2606, RFC 6761). Outside of a test, put the real address here.';

const LONGEST = 2_048;

/** What is wrong with an address of the service, if anything. Never quotes it: it may hold a password. */
export function addressFault(value: unknown): string | undefined {
  if (typeof value === 'string' && value.length > LONGEST) return `is longer than ${LONGEST} characters`;
  const url = parseUrl(value);
  if (!url) return 'is not an absolute URL; write it as https://host or https://host/path';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https://';
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return 'must begin with https://; http:// is for loopback addresses only, because it does not protect tokens';
  }
  if (url.username || url.password) return 'must not hold a user name or password';
  if (/[?#]/.test(value as string)) return 'must have no query and no fragment';
  return undefined;
}

/** Chooses the addresses that a mode uses: specification 5.2.6 and 9.2. */
export function chooseAddresses(mode: Mode, urls: ServiceUrls): ChosenAddresses {
  const apiKey = apiAddress(mode, urls);
  const tokenKey = mode.wantsOAuth ? tokenAddress(mode) : undefined;
  const needed = [apiKey, tokenKey].filter((key) => key !== undefined);
  const faults = needed
    .filter((key) => !urls[key])
    .map((key) => ({ option: `urls.${key}`, message: missing(mode, key === tokenKey) }));
  const warnings = needed.flatMap((key) => {
    const host = reservedHost(urls[key]);
    return host ? [{ option: `urls.${key}`, message: `${host} ${RESERVED}` }] : [];
  });
  const base = apiKey && normalized(urls[apiKey]);
  if (base === undefined || faults.length > 0) return { faults, warnings };
  const token = tokenKey && normalized(urls[tokenKey]);
  const addresses = {
    baseUrl: base,
    origins: ownOrigins(mode, urls),
    tokenUrl: token && `${token}/oauth2/token`,
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

/** The API's addresses in this environment only: no credential of one environment is sent to the other. */
function ownOrigins({ environment }: Mode, urls: ServiceUrls): ReadonlySet<string> {
  const own =
    environment === 'production' ? [urls.baseUrl, urls.oauthBaseUrl] : [urls.sandboxUrl, urls.sandboxMtlsUrl];
  return new Set(
    own
      .map(normalized)
      .filter((address) => address !== undefined)
      .map((address) => new URL(address).origin),
  );
}

function missing({ environment, authentication }: Mode, isTokenAddress: boolean): string {
  const use = isTokenAddress ? 'OAuth tokens come from there' : 'calls go there';
  const mode = `environment '${environment}'${authentication ? ` and authentication '${authentication}'` : ''}`;
  return `is missing: with ${mode}, ${use}.`;
}

/** The address without slashes at its end, as paths are appended to it; undefined for an unusable one. */
function normalized(address: unknown): string | undefined {
  if (addressFault(address) !== undefined) return undefined;
  const url = new URL(address as string);
  return url.origin + withoutSlashes(url.pathname);
}

/** Without the slashes at its end. (A regular expression would look at each run of slashes once for each slash in it.) */
export function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** The host of an address where it is one of the names that never lead to a service. */
function reservedHost(address: unknown): string | undefined {
  const host = parseUrl(address)?.hostname;
  return host && /(^|\.)(example(\.(com|net|org))?|invalid|test)$/.test(host) ? host : undefined;
}

function parseUrl(value: unknown): URL | undefined {
  return typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
}

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
