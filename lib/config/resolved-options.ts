import { type DescribeOption, type OptionLocation } from '../errors/index.js';
import { type ServiceHttpOptions } from './http.options.js';
import { type ServiceLinkSdkOptions, type ServiceOAuthOptions } from './oauth.options.js';
import { type ServiceAuthentication, type ServiceModuleOptions } from './options.js';
import { type ProxyFor } from './proxy.js';
import { type Secret } from './secret.js';
import { type ServiceTlsOptions, type TlsIdentityPems, type TlsIdentitySource } from './tls.options.js';
import { type ServiceTokenCacheOptions } from './token-cache.options.js';

/** Options that have a default, so that each has a value. */
type Filled<T, Key extends keyof T = keyof T> = { [K in Key]-?: NonNullable<T[K]> };

/** The options after merging, defaults and validation. Secrets are wrapped, so that printing this object shows none. */
export type ResolvedOptions = MadeOptions & Omit<ServiceModuleOptions, keyof MadeOptions | 'urls'>;

interface MadeOptions extends Filled<
  ServiceModuleOptions,
  'environment' | 'appTokenHeader' | 'startupCheck'
> {
  /** The module's name, `undefined` for the unnamed one. */
  name?: string;
  describeOption: DescribeOption;
  authentication: ServiceAuthentication;
  addresses: Addresses;
  appToken?: Secret;
  oauth?: OAuthSettings;
  tls: TlsSettings;
  linkSdk: Filled<ServiceLinkSdkOptions>;
  tokenCache: Filled<ServiceTokenCacheOptions>;
  http: HttpSettings;
}

export interface Addresses {
  /** The API's address. Without a slash at its end; it may have a path. */
  baseUrl: string;
  /** Headers may go to these origins only. */
  origins: ReadonlySet<string>;
  /** Of these, the ones whose calls carry the app token, where one is set; in `oauth` beside the bearer. */
  appTokenOrigins: ReadonlySet<string>;
  /** {auth_url}/oauth2/token of the environment. */
  tokenUrl?: string;
  /** The options that name them: `urls.baseUrl`, `urls.authUrl`. */
  baseOption: string;
  tokenOption?: string;
  /** What needs a client certificate of this process; undefined too where a sidecar has it: plain http on loopback. */
  certificateFor?: 'mtls' | 'oauth.mtls';
}

export interface OAuthSettings extends Filled<Omit<ServiceOAuthOptions, 'clientSecret'>> {
  /** Reads the secret again at each call, because a file or a vault may have a new one. */
  clientSecret: () => Promise<Secret>;
}

/** A PEM or passphrase as configured, not yet read. */
export interface TlsInput extends OptionLocation {
  value: Secret | { file: string };
}

/** The options with a PEM or a passphrase. */
export type TlsInputKey = Exclude<keyof TlsIdentityPems, 'publicRoots'>;

export type TlsInputs = { [Key in TlsInputKey]?: TlsInput };

/** What becomes of a client certificate without a chain: no start, or a warning. */
export type ChainNeed = 'required' | 'advised';

export interface TlsSettings extends Filled<Omit<ServiceTlsOptions, keyof TlsIdentityPems>> {
  /** The PEMs as configured, or the function that returns them. */
  source: TlsInputs | TlsIdentitySource;
  /** Of the options; a function returns it. */
  publicRoots?: boolean;
  /** Undefined where no call over https has the client certificate. */
  needsChain?: ChainNeed;
}

/** Without a default. */
type Unset = 'attemptTimeout' | 'onCall' | 'requestId' | 'idempotencyHeader';

/** Here the names of headers are in lower case, and `userAgent` is the whole header. */
export interface HttpSettings
  extends
    Filled<Omit<ServiceHttpOptions, 'proxy' | 'trailingSlash' | Unset>>,
    Pick<ServiceHttpOptions, Unset> {
  /** Of all resources, or of these. */
  trailingSlash: boolean | readonly string[];
  /** Its URL may contain credentials for the proxy. */
  proxyFor?: ProxyFor;
  /** The variable with a proxy for this address, where `http.proxy` is left out and so ignores it. */
  ignoredProxyFor?: (address: string) => string | undefined;
}
