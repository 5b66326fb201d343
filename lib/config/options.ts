import { type TokenStore } from './token-store.js';

/** A secret's text, or the file that holds it (one trailing newline is dropped). */
export type SecretValue = string | { file: string };

/** PEM text (real or `\n`-escaped newlines), the base64 of it, or the file that holds it. */
export type PemValue = string | { file: string };

/** `production` or `sandbox`. */
export type ServiceEnvironment = 'production' | 'sandbox';

/** How calls of the API are authenticated: specification 5.1, 5.2.5 and 5.2.6. */
export type ServiceAuthentication = 'mtls' | 'oauth' | 'app-token';

/**
 * - `ahead`: a token is renewed in the background before it ends, while calls come.
 * - `scheduled`: the same on a schedule, also without calls.
 * - `on-expiry`: a token is asked for when there is none.
 */
export type TokenRefresh = 'ahead' | 'scheduled' | 'on-expiry';

/** The service's addresses; only those that the environment and authentication use have to be set. */
export interface ServiceUrls {
  /** {base_url}. SERVICE_BASE_URL */
  baseUrl?: string | undefined;
  /** {oauth_base_url}: where set, production OAuth calls go there (specification 9.2). SERVICE_OAUTH_BASE_URL */
  oauthBaseUrl?: string | undefined;
  /** {sandbox_url}: `app-token`, and `oauth` without a client certificate. SERVICE_SANDBOX_URL */
  sandboxUrl?: string | undefined;
  /** {sandbox_mtls_url}: `mtls`, and `oauth` with a client certificate. SERVICE_SANDBOX_MTLS_URL */
  sandboxMtlsUrl?: string | undefined;
  /** {auth_url}. SERVICE_AUTH_URL */
  authUrl?: string | undefined;
  /** {sandbox_auth_url}. SERVICE_SANDBOX_AUTH_URL */
  sandboxAuthUrl?: string | undefined;
}

/** OAuth 2.0 client credentials (specification 5.3, 5.4). */
export interface ServiceOAuthOptions {
  /** The application id, a UUID. SERVICE_CLIENT_ID */
  clientId?: string | undefined;
  /**
   * The client secret, a file that holds it, or a function that returns it (vault, KMS). A file or function is asked
   * again when the endpoint says invalid_client. SERVICE_CLIENT_SECRET, SERVICE_CLIENT_SECRET_FILE
   */
  clientSecret?: SecretValue | (() => string | Promise<string>) | undefined;
  /** Default `ahead`. SERVICE_TOKEN_REFRESH */
  refresh?: TokenRefresh | undefined;
  /** Offer the client certificate to the token endpoint too (RFC 8705). Default false. SERVICE_OAUTH_MTLS */
  mtls?: boolean | undefined;
}

/** The client identity as PEM (specification 5.2.1 to 5.2.4). */
export interface TlsIdentityPems {
  /** The application certificate, alone or with chain certificates after it. SERVICE_TLS_CERTIFICATE(_FILE) */
  certificate?: PemValue | undefined;
  /** The certificate's private key. SERVICE_TLS_PRIVATE_KEY(_FILE) */
  privateKey?: PemValue | undefined;
  /** Where the private key is encrypted. SERVICE_TLS_PASSPHRASE(_FILE) */
  passphrase?: SecretValue | undefined;
  /**
   * The service's public chain: the only trust anchor for the API. Without it, Node's public roots.
   * SERVICE_TLS_CHAIN(_FILE)
   */
  chain?: PemValue | undefined;
}

export interface ServiceTlsOptions extends TlsIdentityPems {
  /** Follow the files and swap the identity when they change. Default: true for files. SERVICE_TLS_RELOAD */
  reload?: boolean | undefined;
}

/** Asked at start-up and at each reload, for example from a vault. */
export type TlsIdentitySource = () => TlsIdentityPems | Promise<TlsIdentityPems>;

export interface ServiceLinkSdkOptions {
  /**
   * Seconds that a customer token must have left to be handed out again; at most half of its lifetime counts.
   * Default 600. SERVICE_LINK_SDK_MIN_TOKEN_LIFE
   */
  minTokenLife?: number | undefined;
  /** app_token among the connect parameters in OAuth mode too. Default false. SERVICE_LINK_SDK_INCLUDE_APP_TOKEN */
  includeAppToken?: boolean | undefined;
}

export interface ServiceHttpOptions {
  /** Milliseconds for a whole call, retries and body included. Default 30,000. SERVICE_HTTP_TIMEOUT */
  timeout?: number | undefined;
  /** Attempts after the first. Default 2. SERVICE_HTTP_RETRIES */
  retries?: number | undefined;
  /** Bytes, decompressed. Default 10 MiB. SERVICE_HTTP_MAX_RESPONSE_BYTES */
  maxResponseBytes?: number | undefined;
  /** Connections to one origin. Default 50. SERVICE_HTTP_MAX_SOCKETS */
  maxSockets?: number | undefined;
  /** Resource paths end in a slash: `/banks/v1/`. Default false. SERVICE_HTTP_TRAILING_SLASH */
  trailingSlash?: boolean | undefined;
  /** URL of a proxy (`http://proxy:3128`); the environment's proxies are ignored. SERVICE_HTTP_PROXY */
  proxy?: string | undefined;
  /**
   * What carries the calls: `node` (default) is the module's own exchange over node:https; `axios` is axios's http
   * adapter, for tools that hook into it. SERVICE_HTTP_ADAPTER
   */
  adapter?: 'node' | 'axios' | undefined;
  /** Header of an answer that holds its correlation id. Default `x-correlation-id`. SERVICE_HTTP_CORRELATION_ID_HEADER */
  correlationIdHeader?: string | undefined;
  /** Milliseconds that calls in flight get at shutdown. Default 5,000. SERVICE_HTTP_SHUTDOWN_TIMEOUT */
  shutdownTimeout?: number | undefined;
}

/**
 * What `ServiceModule.forRoot()` takes. Each option left out is filled from its environment variable (named here
 * after the option), through ConfigModule.
 */
export interface ServiceModuleOptions {
  /** Default `sandbox`. SERVICE_ENVIRONMENT */
  environment?: ServiceEnvironment | undefined;
  /** Default `mtls` in production, `app-token` in sandbox. SERVICE_AUTHENTICATION */
  authentication?: ServiceAuthentication | undefined;
  urls?: ServiceUrls | undefined;
  /** Sent in the app-token header; needed for `mtls` and `app-token`. SERVICE_APP_TOKEN(_FILE) */
  appToken?: SecretValue | undefined;
  /** Default `service-app-token`. SERVICE_APP_TOKEN_HEADER */
  appTokenHeader?: string | undefined;
  /** Default false: services of this kind answer 400 to both at once. SERVICE_SEND_APP_TOKEN_WITH_BEARER */
  sendAppTokenWithBearer?: boolean | undefined;
  oauth?: ServiceOAuthOptions | undefined;
  /** PEMs and their reload, or a function that returns the PEMs (in place of the SERVICE_TLS_* variables). */
  tls?: ServiceTlsOptions | TlsIdentitySource | undefined;
  linkSdk?: ServiceLinkSdkOptions | undefined;
  tokenCache?: {
    /** Customer tokens kept, least recently used out first. Default 10,000. SERVICE_TOKEN_CACHE_MAX_ENTRIES */
    maxEntries?: number | undefined;
  };
  /** Tokens shared between processes. */
  tokenStore?: TokenStore | undefined;
  http?: ServiceHttpOptions | undefined;
}
