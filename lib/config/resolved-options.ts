import {
  type PemValue,
  type SecretValue,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type TlsIdentitySource,
  type TokenRefresh,
} from './options.js';
import { type Secret } from './secret.js';
import { type TokenStore } from './token-store.js';

/** Where a value came from, for messages that say where to mend it. */
export interface Origin {
  option: string;
  variable?: string;
}

/** The options after merging, defaults and validation. Secrets are wrapped; nothing in here prints one. */
export interface ResolvedOptions {
  /** The module's name, `undefined` for the unnamed one. */
  name?: string;
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  addresses: Addresses;
  appToken?: Secret;
  appTokenHeader: string;
  sendAppTokenWithBearer: boolean;
  oauth?: OAuthSettings;
  tls: TlsSettings;
  linkSdk: { minTokenLife: number; includeAppToken: boolean };
  tokenCache: { maxEntries: number };
  tokenStore?: TokenStore;
  http: HttpSettings;
}

export interface Addresses {
  /** Calls go there: no trailing slash, may end in a path. */
  baseUrl: string;
  /** Headers may go to these origins only. */
  origins: ReadonlySet<string>;
  /** {auth_url}/oauth2/token of the environment. */
  tokenUrl?: string;
  /** True where calls go to {oauth_base_url} (specification 9.2). */
  deprecated: boolean;
}

export interface OAuthSettings {
  clientId: string;
  /** Read anew at each call: a file that changed or a vault may give another secret. */
  clientSecret: () => Promise<Secret>;
  /** False for a plain string: asking again brings the same. */
  clientSecretCanChange: boolean;
  refresh: TokenRefresh;
  mtls: boolean;
}

/** A PEM or passphrase as configured, not yet read. */
export interface TlsInput<T> extends Origin {
  value: Secret | Extract<T, { file: string }>;
}

export interface TlsInputs {
  certificate?: TlsInput<PemValue>;
  privateKey?: TlsInput<PemValue>;
  passphrase?: TlsInput<SecretValue>;
  chain?: TlsInput<PemValue>;
}

export interface TlsSettings {
  /** The PEMs as configured, or the function that returns them. */
  source: TlsInputs | TlsIdentitySource;
  /** Follow files (or ask the function again). */
  reload: boolean;
}

export interface HttpSettings {
  timeout: number;
  retries: number;
  maxResponseBytes: number;
  maxSockets: number;
  trailingSlash: boolean;
  /** May hold the proxy's own credentials. */
  proxy?: Secret;
  adapter: 'node' | 'axios';
  /** Lower case. */
  correlationIdHeader: string;
  shutdownTimeout: number;
}
