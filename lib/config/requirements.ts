import {
  Options,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  type ServiceUrls,
} from './options.js';
import { type ConfigurationFault, type DescribeOption } from '../errors/index.js';
import {
  addressFault,
  withoutSlashes,
  ENVIRONMENT,
  environmentProxy,
  isProxyUrl,
  proxyVariable,
} from './address.js';
import { type Addresses, type ChainNeed } from './resolve-options.js';
import { PROXY_MESSAGE } from './option.js';

/** The settings that decide which other options are required. */
interface Mode {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  hasCertificate: boolean;
  wantsOAuth: boolean;
  given: ServiceModuleOptions;
}

/** The mode, from options and defaults. Undefined if one of the options that decide it is not valid (`broken`). */
export function modeOf(given: ServiceModuleOptions, broken: ReadonlySet<string>): Mode | undefined {
  if (['environment', 'authentication', 'urls', 'oauth', 'tls'].some((option) => broken.has(option))) {
    return undefined;
  }
  const { environment = new Options().environment, oauth = {}, tls = {} } = given;
  const { authentication = environment === 'production' ? 'mtls' : 'app-token' } = given;
  return {
    environment,
    authentication,
    given,
    hasCertificate: typeof tls === 'function' || (tls.certificate ?? tls.privateKey) !== undefined,
    wantsOAuth: authentication === 'oauth' || (oauth.clientId ?? oauth.clientSecret) !== undefined,
  };
}

/** The value of an option in a message: `'sandbox' (the default)`. */
function quoteSetting(option: 'environment' | 'authentication', mode: Mode): string {
  return `'${mode[option]}'${mode.given[option] === undefined ? ' (the default)' : ''}`;
}

type UrlOption = keyof ServiceUrls;

interface AddressChoice extends Pick<Addresses, 'certificateFor'> {
  /** Absent if a required address is missing or not valid. */
  addresses?: Addresses;
  needsChain?: ChainNeed;
  faults: ConfigurationFault[];
}

/** Chooses the addresses for a mode, as docs/service.md#addresses lists them. */
export function chooseAddresses(mode: Mode): AddressChoice {
  const { environment, authentication, wantsOAuth } = mode;
  const isProduction = environment === 'production';
  const { urls = {}, oauth = {} } = mode.given;
  const apiUrlOption = apiAddress(mode, urls);
  const tokenUrlOption = isProduction ? 'authUrl' : 'sandboxAuthUrl';
  const faults = [
    ...(urls[apiUrlOption] ? [] : [missingAddress(mode, apiUrlOption, 'API calls go there')]),
    ...(urls[tokenUrlOption] || !wantsOAuth
      ? []
      : [missingAddress(mode, tokenUrlOption, 'token requests go there')]),
  ];
  const isPlain = (key: UrlOption) => normalized(urls[key])?.startsWith('http:') === true;
  // Token requests present the client certificate, and the tokens are bound to it.
  const isBound = oauth.mtls === true && !isPlain(tokenUrlOption);
  const certificateFor =
    authentication === 'mtls' && !isPlain(apiUrlOption) ? 'mtls' : isBound ? 'oauth.mtls' : undefined;
  // Only the addresses of this environment, so that credentials of one environment are never sent to the other.
  const own = isProduction ? [urls.baseUrl, urls.oauthBaseUrl] : [urls.sandboxUrl, urls.sandboxMtlsUrl];
  const origins = new Set(own.flatMap((each) => normalized(each) ?? []).map((each) => new URL(each).origin));
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

/** Checks the options that depend on each other, as docs/service.md#authentication describes. A warning ends no start. */
export function checkRequirements(
  mode: Mode,
  { certificateFor, faults }: AddressChoice,
  describe: DescribeOption,
): Record<'faults' | 'warnings', ConfigurationFault[]> {
  const { environment, authentication, hasCertificate, wantsOAuth, given } = mode;
  const { oauth = {}, linkSdk = {} } = given;
  const found: ConfigurationFault[] = [];
  const warnings: ConfigurationFault[] = [];
  const addFault = (option: string, message: string): void => void found.push({ option, message });
  const addMissing = (option: string, why: string): void =>
    void found.push({ option, message: `is missing: ${why}`, isMissing: true });
  if (environment === 'production' && authentication === 'app-token') {
    addFault('authentication', "'app-token' is for the sandbox only; in production use 'mtls' or 'oauth'.");
    return { faults: found, warnings };
  }
  if (certificateFor === 'mtls' && !hasCertificate) {
    const orOAuth = ` If calls send a bearer token instead, set ${describe('authentication')} to 'oauth'.`;
    const mayMeanOAuth = given.authentication === undefined && oauth.clientId !== undefined;
    addMissing(
      'tls.certificate',
      `${quoteSetting('authentication', mode)} needs the application certificate and its private key (developer portal, authentication section: generate certificate).${mayMeanOAuth ? orOAuth : ''}`,
    );
  } else if (certificateFor === 'oauth.mtls' && !hasCertificate) {
    addFault('oauth.mtls', 'needs a client certificate: set tls.certificate and tls.privateKey.');
  }
  if (given.appToken === undefined) {
    const wanted =
      (given.sendAppTokenWithBearer === true && 'sendAppTokenWithBearer') ||
      (linkSdk.includeAppToken === true && 'linkSdk.includeAppToken');
    if (authentication !== 'oauth')
      addMissing('appToken', `${quoteSetting('authentication', mode)} sends it with every call.`);
    else if (wanted) addMissing('appToken', `${describe(wanted)} needs it.`);
    else if (linkSdk.includeAppToken === undefined)
      warnings.push({ option: 'appToken', message: NO_APP_TOKEN });
  }
  const portal = '(developer portal, Integration tab).';
  if (wantsOAuth && oauth.clientId === undefined) {
    addMissing('oauth.clientId', `OAuth needs the application id ${portal}`);
  }
  if (wantsOAuth && oauth.clientSecret === undefined) {
    addMissing('oauth.clientSecret', `OAuth needs the application's client secret ${portal}`);
  }
  if (linkSdk.requireOAuth === true && !wantsOAuth) {
    addFault(
      'linkSdk.requireOAuth',
      'needs OAuth credentials: set oauth.clientId and oauth.clientSecret. If OAuth is enabled for the application, a LinkSDK session without a customer token fails.',
    );
  }
  const { appTokenHeader, http } = new Options();
  const own = [
    given.appTokenHeader ?? appTokenHeader,
    given.http?.idempotencyHeader ?? http.idempotencyHeader,
    given.http?.correlationIdHeader ?? http.correlationIdHeader,
  ];
  const clash = Object.keys(given.http?.headers ?? {}).find((name) =>
    own.some((each) => String(each).toLowerCase() === name.toLowerCase()),
  );
  if (clash !== undefined) addFault('http.headers', `must not contain ${clash}: the module sets it itself.`);
  if (given.http?.proxy === ENVIRONMENT && proxyVariable() !== undefined && !isProxyUrl(environmentProxy())) {
    addFault('http.proxy', PROXY_MESSAGE);
  }
  return { faults: [...found, ...faults], warnings };
}

const NO_APP_TOKEN =
  'is not set, but every LinkSDK session needs it. The app token is public, and usually the application id. If the application has no LinkSDK sessions, set linkSdk.includeAppToken to false.';
