import { type DescribeOption, type OptionLocation } from '../errors/index.js';
import { type FilledOptions, type ServiceAuthentication } from './options.js';
import { type ProxyFor } from './proxy.js';
import { type Secret } from './secret.js';
import { type TlsIdentityPems, type TlsIdentitySource } from './tls.options.js';

/** The options after merging, defaults and validation. Secrets are wrapped, so that printing this object shows none. */
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
  /** The API's address. Without a slash at its end; it may have a path. */
  baseUrl: string;
  /** Calls may go to these origins only. */
  origins: ReadonlySet<string>;
  /** {auth_url}/oauth2/token of the environment. */
  tokenUrl?: string;
  /** The options that set them: `urls.baseUrl`, `urls.authUrl`. */
  baseOption: string;
  tokenOption?: string;
  /** What needs a client certificate of this process. Undefined also if a sidecar has it: plain http on loopback. */
  certificateFor?: 'mtls' | 'oauth.mtls';
}

export interface OAuthSettings extends Omit<FilledOptions['oauth'], 'clientSecret'> {
  clientId: string;
  /** Reads the secret again at each call, because a file or a vault may have a new one. */
  clientSecret: () => Promise<Secret>;
}

export interface WebhookSettings {
  /** In lower case. */
  header: string;
  /** As {@link OAuthSettings.clientSecret}. Absent if none is configured. */
  secret?: () => Promise<Secret>;
}

/** The options with a PEM or a passphrase. */
export type TlsInputKey = Exclude<keyof TlsIdentityPems, 'publicRoots'>;

/** PEMs and passphrase as configured, not yet read. */
export type TlsInputs = { [Key in TlsInputKey]?: Secret | { file: string } };

/** What happens to a client certificate without a chain: no start, or a warning. */
export type ChainNeed = 'required' | 'advised';

export interface TlsSettings {
  /** The PEMs as configured, or the function that returns them. */
  source: TlsInputs | TlsIdentitySource;
  /** Where an option is set, or would be; with a function, its name alone. */
  locate: (option: string) => OptionLocation;
  reload: boolean;
  /** Where relative paths begin. Default: the working directory of the moment. */
  folder?: string;
  /** Of the options; a function returns its own. */
  publicRoots?: boolean;
  /** Undefined if no call over https has the client certificate. */
  needsChain?: ChainNeed;
}

/** Here the names of headers are in lower case, and `userAgent` is the whole header. */
export interface HttpSettings extends Omit<FilledOptions['http'], 'proxy' | 'trailingSlash'> {
  userAgent: string;
  /** For all resources, or for these. */
  trailingSlash: boolean | readonly string[];
  /** Its URL may contain credentials for the proxy. */
  proxyFor?: ProxyFor;
  /** The variable with a proxy for this address that is ignored, because `http.proxy` is left out. */
  ignoredProxyFor?: (address: string) => string | undefined;
}
