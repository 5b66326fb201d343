import {
  type Given,
  IsAuthAddress,
  IsServiceAddress,
  Flag,
  IsSourceOrFunction,
  IsUuid,
  OneOf,
  WholeNumber,
  IsHeaderName,
  IsHeaderPrefix,
  IsHmacAlgorithm,
  optionsOf,
  OptionsSection,
  Section,
  sectionsOf,
  definedEntries,
  type OptionEntry,
  IsTokenStore,
} from './option.js';
import { type SecretSource } from './secret.js';
import { ValidateIf } from 'class-validator';
import { HttpOptions } from './http.options.js';
import { TlsOptions, type TlsIdentitySource } from './tls.options.js';

/** The service's addresses. Only those that `environment` and `authentication` use are required. */
class UrlOptions extends OptionsSection<ServiceUrls> {
  /** The API in production, {base_url}, for example `https://api.service.example`. SERVICE_BASE_URL */
  @IsServiceAddress('BASE_URL')
  baseUrl?: string;

  /**
   * The API in production for calls with OAuth, {oauth_base_url}. If it is not set, they go to `baseUrl`
   * (docs/service.md#addresses). SERVICE_OAUTH_BASE_URL
   */
  @IsServiceAddress('OAUTH_BASE_URL')
  oauthBaseUrl?: string;

  /** The API in the sandbox, {sandbox_url}, for `app-token`, and for `oauth` without a client certificate. SERVICE_SANDBOX_URL */
  @IsServiceAddress('SANDBOX_URL')
  sandboxUrl?: string;

  /** The API in the sandbox, {sandbox_mtls_url}, for `mtls`, and for `oauth` with a client certificate. SERVICE_SANDBOX_MTLS_URL */
  @IsServiceAddress('SANDBOX_MTLS_URL')
  sandboxMtlsUrl?: string;

  /** The token endpoint in production, {auth_url}, without `/oauth2/token`. SERVICE_AUTH_URL */
  @IsAuthAddress('AUTH_URL')
  authUrl?: string;

  /** The token endpoint in the sandbox, {sandbox_auth_url}, without `/oauth2/token`. SERVICE_SANDBOX_AUTH_URL */
  @IsAuthAddress('SANDBOX_AUTH_URL')
  sandboxAuthUrl?: string;
}

/**
 * When a token is renewed:
 * - `ahead`: in the background before it expires, when a call uses the token.
 * - `scheduled`: in the background before it expires, by a timer, even if there are no calls.
 * - `on-expiry`: when a call needs a token and there is no valid one. That call waits for the token request.
 */
export type TokenRefresh = 'ahead' | 'scheduled' | 'on-expiry';

/** OAuth 2.0 client credentials (docs/service.md#oauth). */
class OAuthOptions extends OptionsSection<ServiceOAuthOptions> {
  /** The application id, a UUID. SERVICE_CLIENT_ID */
  @IsUuid('CLIENT_ID')
  clientId?: string;

  /**
   * The client secret, its file, or a function that returns it within 8 s (vault, KMS). If the token endpoint responds with
   * invalid_client, the file is read again, or the function is called again. SERVICE_CLIENT_SECRET,
   * SERVICE_CLIENT_SECRET_FILE
   */
  @IsSourceOrFunction('CLIENT_SECRET')
  clientSecret?: SecretSource;

  /** When a token is renewed. Default `ahead`. SERVICE_TOKEN_REFRESH */
  @OneOf('TOKEN_REFRESH', 'ahead', 'scheduled', 'on-expiry')
  refresh: TokenRefresh = 'ahead';

  /** Present the client certificate to the token endpoint too (RFC 8705). Default false. SERVICE_OAUTH_MTLS */
  @Flag('OAUTH_MTLS')
  mtls = false;
}

/** LinkSDK sessions in the browser (docs/service.md#linksdk-parameters). */
class LinkSdkOptions extends OptionsSection<ServiceLinkSdkOptions> {
  /**
   * Seconds that a cached customer token must still be valid for to be reused in a session, at most half of its lifetime.
   * Default 600. SERVICE_LINK_SDK_MIN_TOKEN_LIFE
   */
  @WholeNumber('LINK_SDK_MIN_TOKEN_LIFE', 0, 86_400, 'seconds')
  minTokenLife = 600;

  /**
   * Whether session parameters include `app_token`. With false, it is left out if there are OAuth credentials. With an
   * explicit true, `appToken` is required. Default: true if `appToken` is set. SERVICE_LINK_SDK_INCLUDE_APP_TOKEN
   */
  @Flag('LINK_SDK_INCLUDE_APP_TOKEN')
  includeAppToken = true;

  /**
   * Set this to true if OAuth is enabled for the application: sessions without a customer token then fail. With true, the
   * application does not start without OAuth credentials. Default false. SERVICE_LINK_SDK_REQUIRE_OAUTH
   */
  @Flag('LINK_SDK_REQUIRE_OAUTH')
  requireOAuth = false;
}

/** The token cache of this process. */
class TokenCacheOptions extends OptionsSection<ServiceTokenCacheOptions> {
  /**
   * The most customer tokens in the cache. The least recently used is evicted. Default 10,000.
   * SERVICE_TOKEN_CACHE_MAX_ENTRIES
   */
  @WholeNumber('TOKEN_CACHE_MAX_ENTRIES', 1, 10_000_000, 'entries')
  maxEntries = 10_000;
}

/** The most characters of a value in a {@link TokenStore}. The longest token that is accepted takes about 22,000. */
export const MAX_ENTRY_LENGTH = 65_536;

/**
 * Shares tokens between processes. If a method fails or is slow, the process uses only its own tokens for a second.
 *
 * Keys are hashes, and values are encrypted. The keys for both are derived from the client secret.
 */
export interface TokenStore {
  /** Milliseconds that a method may take. Default 250. */
  readonly timeout?: number | undefined;
  /** A value longer than 65,536 characters was not written by this module, and need not be returned. */
  get(key: string): Promise<string | undefined>;
  /** The entry must expire after `ttlMs` milliseconds. */
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** With `ifValue`, deletes the entry only if it still has that value. The comparison and the deletion must be atomic. */
  delete(key: string, ifValue?: string): Promise<void>;
  /**
   * Acquires a lock, which must expire after `ttlMs` milliseconds. Resolves with a function that releases it, or with
   * undefined if another process holds it. The function must never release a lock that has expired, because another process
   * may hold it by then.
   */
  lock?(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;
  /** Called at start-up. Returns the faults of the store's own settings, without secrets. Must not connect. */
  check?(): readonly string[] | Promise<readonly string[]>;
}

/** Webhooks that the service sends to the application (docs/webhooks.md). */
class WebhookOptions extends OptionsSection<ServiceWebhookOptions> {
  /**
   * The secret that signs the webhooks, its file, or a function that returns it within 8 s (vault, KMS). During a
   * rotation, give both secrets, each on its own line. After a wrong signature the file is read again, or the function
   * is called again, at most once in 10 s. SERVICE_WEBHOOK_SECRET, SERVICE_WEBHOOK_SECRET_FILE
   */
  @IsSourceOrFunction('WEBHOOK_SECRET')
  secret?: SecretSource;

  /** The header that carries the signature. Default `service-signature`. SERVICE_WEBHOOK_HEADER */
  @IsHeaderName('WEBHOOK_HEADER')
  header = 'service-signature';

  /** The hash function of the HMAC, by its name in `node:crypto`. Default `sha512`. SERVICE_WEBHOOK_ALGORITHM */
  @IsHmacAlgorithm('WEBHOOK_ALGORITHM')
  algorithm = 'sha512';

  /**
   * The text before the hexadecimal digits. It may be empty, also in the variable. If it is not set, it is the algorithm and
   * `=`, for example `sha512=`. SERVICE_WEBHOOK_PREFIX
   */
  @IsHeaderPrefix('WEBHOOK_PREFIX')
  prefix?: string;
}

/** `production` or `sandbox`. */
export type ServiceEnvironment = 'production' | 'sandbox';

/** Whether the start-up check runs, and what happens if it fails. */
export type ServiceStartupCheck = 'off' | 'warn' | 'fail';

/** How API calls are authenticated (docs/service.md#authentication). */
export type ServiceAuthentication = 'mtls' | 'oauth' | 'app-token';

/**
 * All options. A new instance has the defaults that do not depend on another option. The variable of an option is named at the
 * end of its description.
 */
export class Options {
  /** Default `sandbox`. SERVICE_ENVIRONMENT */
  @OneOf('ENVIRONMENT', 'production', 'sandbox')
  environment: ServiceEnvironment = 'sandbox';

  /** Default `mtls` in production, `app-token` in sandbox. SERVICE_AUTHENTICATION */
  @OneOf('AUTHENTICATION', 'mtls', 'oauth', 'app-token')
  authentication?: ServiceAuthentication;

  /** The service's addresses. */
  @Section(UrlOptions)
  urls = new UrlOptions();

  /**
   * The app token, usually the application id. It is public. Calls send it with `mtls` and `app-token`, and LinkSDK
   * sessions include it. A text, a file, or a function that returns it within 8 s (vault, KMS), read once at the start.
   * SERVICE_APP_TOKEN, SERVICE_APP_TOKEN_FILE
   */
  @IsSourceOrFunction('APP_TOKEN')
  appToken?: SecretSource;

  /** The header that carries the app token. Default `service-app-token`. SERVICE_APP_TOKEN_HEADER */
  @IsHeaderName('APP_TOKEN_HEADER')
  appTokenHeader = 'service-app-token';

  /**
   * Send the app token in addition to the bearer token, to every address. Default false, because the service refuses
   * both in one call on most paths (docs/service.md#both-in-one-call). SERVICE_SEND_APP_TOKEN_WITH_BEARER
   */
  @Flag('SEND_APP_TOKEN_WITH_BEARER')
  sendAppTokenWithBearer = false;

  /** OAuth client credentials: needed for `oauth`, and for customer tokens (docs/service.md#oauth). */
  @Section(OAuthOptions)
  oauth = new OAuthOptions();

  /** The client certificate, its key and the service's chain, or a function that returns them (vault). SERVICE_TLS_* */
  @Section(TlsOptions)
  @ValidateIf((_, tls) => typeof tls !== 'function')
  tls: TlsOptions | TlsIdentitySource = new TlsOptions();

  /** LinkSDK sessions in the browser. */
  @Section(LinkSdkOptions)
  linkSdk = new LinkSdkOptions();

  /** The token cache of this process. */
  @Section(TokenCacheOptions)
  tokenCache = new TokenCacheOptions();

  /** A store that shares tokens between processes. */
  @IsTokenStore()
  tokenStore?: TokenStore;

  /** Limits, retries, paths and the proxy of calls. */
  @Section(HttpOptions)
  http = new HttpOptions();

  /** Webhooks that the service sends. */
  @Section(WebhookOptions)
  webhook = new WebhookOptions();

  /**
   * Before the application listens, request a token (with OAuth) and list the banks, within 15 s. `warn` logs a failure, and
   * a client certificate that has expired or is not valid yet then ends no start either. `fail` ends the start with a
   * ServiceStartupError. Default `off`. SERVICE_STARTUP_CHECK
   */
  @OneOf('STARTUP_CHECK', 'off', 'warn', 'fail')
  startupCheck: ServiceStartupCheck = 'off';
}

/**
 * The options of `ServiceModule.forRoot()`. An option that you leave out is read from its environment variable, which is
 * named at the end of its description.
 */
export interface ServiceModuleOptions extends Given<Options> {}
/** The service's addresses, as an application gives them. */
export interface ServiceUrls extends Given<UrlOptions> {}
/** OAuth client credentials, as an application gives them. */
export interface ServiceOAuthOptions extends Given<OAuthOptions> {}
/** Options of LinkSDK sessions, as an application gives them. */
export interface ServiceLinkSdkOptions extends Given<LinkSdkOptions> {}
/** Options of the token cache, as an application gives them. */
export interface ServiceTokenCacheOptions extends Given<TokenCacheOptions> {}
/** Options of webhooks, as an application gives them. */
export interface ServiceWebhookOptions extends Given<WebhookOptions> {}

/** Implemented by the class of `useClass` or `useExisting` in `ServiceModule.forRootAsync()`. */
export interface ServiceOptionsFactory {
  createServiceOptions(): ServiceModuleOptions | Promise<ServiceModuleOptions>;
}

/** All options with their variables. */
export const OPTIONS: readonly OptionEntry[] = optionsOf(Options);

export function entryOf(option: string): OptionEntry | undefined {
  return OPTIONS.find((entry) => entry.option === option);
}

/**
 * Merges options key by key into a new object. The first source that sets a key wins. A `tls` function wins or loses
 * whole.
 */
export function mergeOptions(...sources: readonly (object | undefined)[]): ServiceModuleOptions {
  const sections = sectionsOf(Options);
  const merged = new Map<string, unknown>();
  for (const [key, value] of sources.flatMap((source) => definedEntries(source))) {
    const first = merged.get(key);
    const isSection =
      Object.hasOwn(sections, key) && typeof value === 'object' && typeof (first ?? value) === 'object';
    const both = (): object => Object.fromEntries([value, first].flatMap((each) => definedEntries(each)));
    merged.set(key, isSection ? both() : (first ?? value));
  }
  return Object.fromEntries(merged);
}
