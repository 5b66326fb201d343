import { type DescribeOption, type OptionLocation } from '../errors/index.js';
import { type FilledOptions, type ServiceAuthentication } from './options.js';
import { type ProxyFor } from './proxy.js';
import { type Secret } from './secret.js';
import { type TlsIdentityPems, type TlsIdentitySource } from './tls.options.js';

/**
 * The options after merging, defaults and validation. Secrets are wrapped, so that printing this object shows no
 * secret.
 */
export interface ResolvedOptions extends Omit<
  FilledOptions,
  'urls' | 'appToken' | 'oauth' | 'tls' | 'http' | 'webhook'
> {
  locate: (option: string) => OptionLocation;
  describeOption: DescribeOption;
  authentication: ServiceAuthentication;
  addresses: Addresses;
  appToken?: Secret;
  oauth?: OAuthSettings;
  tls: TlsSettings;
  http: HttpSettings;
  webhook: WebhookSettings;
}

export interface Addresses {
  /** The API's address, without a trailing slash. It may have a path. */
  baseUrl: string;
  /** The only origins that calls may go to. */
  origins: ReadonlySet<string>;
  /** `{auth_url}/oauth2/token` of the environment. */
  tokenUrl?: string;
  /** The options that set the two addresses, such as `urls.baseUrl` and `urls.authUrl`. */
  baseOption: string;
  tokenOption?: string;
  /**
   * The setting that requires a client certificate. Undefined if none does, or if a sidecar on plain http has the
   * certificate.
   */
  certificateFor?: 'mtls' | 'oauth.mtls';
}

export interface OAuthSettings extends Omit<FilledOptions['oauth'], 'clientSecret'> {
  clientId: string;
  /** Reads the secret again with each call, because a file or a vault may have a new secret. */
  clientSecret: () => Promise<Secret>;
  clientSecretIn: 'text' | 'file' | 'function';
}

export interface WebhookSettings {
  /** Lower case. */
  header: string;
  /** As {@link OAuthSettings.clientSecret}. Absent if none is configured. */
  secret?: () => Promise<Secret>;
}

/** The options that hold a PEM or a passphrase. */
export type TlsInputKey = Exclude<keyof TlsIdentityPems, 'publicRoots'>;

/** PEMs and passphrase as configured. Files are not read yet. */
export type TlsInputs = { [Key in TlsInputKey]?: Secret | { file: string } };

/** A client certificate without a chain is a fault (`required`) or a warning (`advised`). */
export type ChainNeed = 'required' | 'advised';

export interface TlsSettings {
  /** The PEMs, or the function that returns them. */
  source: TlsInputs | TlsIdentitySource;
  /** Names an option and its variable. With a function as source, no variable sets the option. */
  locate: (option: string) => OptionLocation;
  reload: boolean;
  /** The base of relative paths. Default: the current working directory. */
  folder?: string;
  /** With a function as source, its result says it instead. */
  publicRoots?: boolean;
  /** Undefined if no https connection presents the client certificate. */
  needsChain?: ChainNeed;
}

/** Names of headers are in lower case. `userAgent` is the complete header value. */
export interface HttpSettings extends Omit<FilledOptions['http'], 'proxy' | 'trailingSlash'> {
  userAgent: string;
  /** For all resources, or for those with these names. */
  trailingSlash: boolean | readonly string[];
  /** A secret, because the proxy's URL may contain a password. */
  proxyFor?: ProxyFor;
  /** The variable that names a proxy for this address, which is ignored because `http.proxy` is not set. */
  ignoredProxyFor?: (address: string) => string | undefined;
}
