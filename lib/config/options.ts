import {
  IsAuthAddress,
  IsServiceAddress,
  Flag,
  IsSourceOrFunction,
  IsUuid,
  OneOf,
  IsSource,
  WholeNumber,
  IsHeaderName,
  optionsOf,
  Section,
  sectionsOf,
  definedEntries,
  type OptionEntry,
  IsTokenStore,
} from './option.js';
import { type SecretSource, type PemValue, type SecretValue } from './secret.js';
import { ValidateIf } from 'class-validator';
import { ServiceHttpOptions } from './http.options.js';

/** The service's addresses. Only those that `environment` and `authentication` use are required. */
export class ServiceUrls {
  /** The API in production, {base_url}, for example `https://api.service.example`. SERVICE_BASE_URL */
  @IsServiceAddress('BASE_URL')
  baseUrl?: string | undefined;

  /**
   * The API in production for calls with OAuth, {oauth_base_url}. If it is not set, they go to `baseUrl`
   * (docs/service.md#addresses). SERVICE_OAUTH_BASE_URL
   */
  @IsServiceAddress('OAUTH_BASE_URL')
  oauthBaseUrl?: string | undefined;

  /** The API in the sandbox, {sandbox_url}, for `app-token`, and for `oauth` without a client certificate. SERVICE_SANDBOX_URL */
  @IsServiceAddress('SANDBOX_URL')
  sandboxUrl?: string | undefined;

  /** The API in the sandbox, {sandbox_mtls_url}, for `mtls`, and for `oauth` with a client certificate. SERVICE_SANDBOX_MTLS_URL */
  @IsServiceAddress('SANDBOX_MTLS_URL')
  sandboxMtlsUrl?: string | undefined;

  /** The token endpoint in production, {auth_url}, without `/oauth2/token`. SERVICE_AUTH_URL */
  @IsAuthAddress('AUTH_URL')
  authUrl?: string | undefined;

  /** The token endpoint in the sandbox, {sandbox_auth_url}, without `/oauth2/token`. SERVICE_SANDBOX_AUTH_URL */
  @IsAuthAddress('SANDBOX_AUTH_URL')
  sandboxAuthUrl?: string | undefined;
}

/**
 * When a token is renewed:
 * - `ahead`: in the background before it expires, when a call uses the token.
 * - `scheduled`: in the background before it expires, by a timer, even if there are no calls.
 * - `on-expiry`: when a call needs a token and there is no valid one. That call waits for the token request.
 */
export type TokenRefresh = 'ahead' | 'scheduled' | 'on-expiry';

/** OAuth 2.0 client credentials (docs/service.md#oauth). */
export class ServiceOAuthOptions {
  /** The application id, a UUID. SERVICE_CLIENT_ID */
  @IsUuid('CLIENT_ID')
  clientId?: string | undefined;

  /**
   * The client secret, its file, or a function that returns it within 8 s (vault, KMS). If the token endpoint responds with
   * invalid_client, the file is read again, or the function is called again. SERVICE_CLIENT_SECRET,
   * SERVICE_CLIENT_SECRET_FILE
   */
  @IsSourceOrFunction('CLIENT_SECRET')
  clientSecret?: SecretSource | undefined;

  /** When a token is renewed. Default `ahead`. SERVICE_TOKEN_REFRESH */
  @OneOf('TOKEN_REFRESH', 'ahead', 'scheduled', 'on-expiry')
  refresh?: TokenRefresh | undefined;

  /** Present the client certificate to the token endpoint too (RFC 8705). Default false. SERVICE_OAUTH_MTLS */
  @Flag('OAUTH_MTLS')
  mtls?: boolean | undefined;
}

/** The client certificate with its key, and the trust anchors for the service (docs/service.md#mutual-tls). */
export class TlsIdentityPems {
  /** The application certificate. Certificates of its chain may follow it. SERVICE_TLS_CERTIFICATE(_FILE) */
  @IsSource('TLS_CERTIFICATE')
  certificate?: PemValue | undefined;

  /** The certificate's private key. Both options may name the same file. SERVICE_TLS_PRIVATE_KEY(_FILE) */
  @IsSource('TLS_PRIVATE_KEY')
  privateKey?: PemValue | undefined;

  /** The passphrase of an encrypted private key. SERVICE_TLS_PASSPHRASE(_FILE) */
  @IsSource('TLS_PASSPHRASE')
  passphrase?: SecretValue | undefined;

  /**
   * The service's public chain: the only trust anchor for the API. Required with a client certificate in production
   * (specification, 5.2.4), unless `publicRoots` is true. SERVICE_TLS_CHAIN(_FILE)
   */
  @IsSource('TLS_CHAIN')
  chain?: PemValue | undefined;

  /** Verify the service against Node's public roots instead of a chain. Default false. SERVICE_TLS_PUBLIC_ROOTS */
  @Flag('TLS_PUBLIC_ROOTS')
  publicRoots?: boolean | undefined;
}

/** The client certificate, and whether it is reloaded when its files change. */
export class ServiceTlsOptions extends TlsIdentityPems {
  /**
   * Reload the certificate, key, passphrase and chain when they change. Files are read every 2 s, a function is called
   * every 60 s. Default true. SERVICE_TLS_RELOAD
   */
  @Flag('TLS_RELOAD')
  reload?: boolean | undefined;
}

/**
 * Returns the PEMs, for example from a vault. Called at start-up, every 60 s, and after a server has refused the
 * certificate. It may take 30 s.
 */
export type TlsIdentitySource = () => TlsIdentityPems | Promise<TlsIdentityPems>;

/** LinkSDK sessions in the browser (docs/service.md#linksdk-parameters). */
export class ServiceLinkSdkOptions {
  /**
   * Seconds that a cached customer token must still be valid for to be reused in a session, at most half of its lifetime.
   * Default 600. SERVICE_LINK_SDK_MIN_TOKEN_LIFE
   */
  @WholeNumber('LINK_SDK_MIN_TOKEN_LIFE', 0, 86_400, 'seconds')
  minTokenLife?: number | undefined;

  /**
   * Whether session parameters include `app_token`. With false, it is left out if there are OAuth credentials. With an
   * explicit true, `appToken` is required. Default: true if `appToken` is set. SERVICE_LINK_SDK_INCLUDE_APP_TOKEN
   */
  @Flag('LINK_SDK_INCLUDE_APP_TOKEN')
  includeAppToken?: boolean | undefined;

  /**
   * Set this to true if OAuth is enabled for the application: sessions without a customer token then fail. With true, the
   * application does not start without OAuth credentials. Default false. SERVICE_LINK_SDK_REQUIRE_OAUTH
   */
  @Flag('LINK_SDK_REQUIRE_OAUTH')
  requireOAuth?: boolean | undefined;
}

/** The token cache of this process. */
export class ServiceTokenCacheOptions {
  /**
   * The most customer tokens in the cache. The least recently used is evicted. Default 10,000.
   * SERVICE_TOKEN_CACHE_MAX_ENTRIES
   */
  @WholeNumber('TOKEN_CACHE_MAX_ENTRIES', 1, 10_000_000, 'entries')
  maxEntries?: number | undefined;
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
export class ServiceWebhookOptions {
  /**
   * The secret that signs the webhooks, its file, or a function that returns it within 8 s (vault, KMS). During a
   * rotation, give both secrets, each on its own line. After a wrong signature the file is read again, or the function
   * is called again, at most once in 10 s. SERVICE_WEBHOOK_SECRET, SERVICE_WEBHOOK_SECRET_FILE
   */
  @IsSourceOrFunction('WEBHOOK_SECRET')
  secret?: SecretSource | undefined;

  /** The header that carries the signature. Default `service-signature`. SERVICE_WEBHOOK_HEADER */
  @IsHeaderName('WEBHOOK_HEADER')
  header?: string | undefined;
}

/** `production` or `sandbox`. */
export type ServiceEnvironment = 'production' | 'sandbox';

/** Whether the start-up check runs, and what happens if it fails. */
export type ServiceStartupCheck = 'off' | 'warn' | 'fail';

/** How API calls are authenticated (docs/service.md#authentication). */
export type ServiceAuthentication = 'mtls' | 'oauth' | 'app-token';

/**
 * The options of `ServiceModule.forRoot()`. An option that you leave out is read from its environment variable, which is
 * named at the end of its description.
 */
export class ServiceModuleOptions {
  /** Default `sandbox`. SERVICE_ENVIRONMENT */
  @OneOf('ENVIRONMENT', 'production', 'sandbox')
  environment?: ServiceEnvironment | undefined;

  /** Default `mtls` in production, `app-token` in sandbox. SERVICE_AUTHENTICATION */
  @OneOf('AUTHENTICATION', 'mtls', 'oauth', 'app-token')
  authentication?: ServiceAuthentication | undefined;

  /** The service's addresses. */
  @Section(ServiceUrls)
  urls?: ServiceUrls | undefined;

  /**
   * The app token, usually the application id. It is public. Calls send it with `mtls` and `app-token`, and LinkSDK
   * sessions include it. A text, a file, or a function that returns it within 8 s (vault, KMS), read once at the start.
   * SERVICE_APP_TOKEN, SERVICE_APP_TOKEN_FILE
   */
  @IsSourceOrFunction('APP_TOKEN')
  appToken?: SecretSource | undefined;

  /** The header that carries the app token. Default `service-app-token`. SERVICE_APP_TOKEN_HEADER */
  @IsHeaderName('APP_TOKEN_HEADER')
  appTokenHeader?: string | undefined;

  /**
   * Send the app token in addition to the bearer token, to every address. Default false, because the service refuses
   * both in one call on most paths (docs/service.md#both-in-one-call). SERVICE_SEND_APP_TOKEN_WITH_BEARER
   */
  @Flag('SEND_APP_TOKEN_WITH_BEARER')
  sendAppTokenWithBearer?: boolean | undefined;

  /** OAuth client credentials: needed for `oauth`, and for customer tokens (docs/service.md#oauth). */
  @Section(ServiceOAuthOptions)
  oauth?: ServiceOAuthOptions | undefined;

  /** The client certificate, its key and the service's chain, or a function that returns them (vault). SERVICE_TLS_* */
  @Section(ServiceTlsOptions)
  @ValidateIf((_, tls) => typeof tls !== 'function')
  tls?: ServiceTlsOptions | TlsIdentitySource | undefined;

  /** LinkSDK sessions in the browser. */
  @Section(ServiceLinkSdkOptions)
  linkSdk?: ServiceLinkSdkOptions | undefined;

  /** The token cache of this process. */
  @Section(ServiceTokenCacheOptions)
  tokenCache?: ServiceTokenCacheOptions | undefined;

  /** A store that shares tokens between processes. */
  @IsTokenStore()
  tokenStore?: TokenStore | undefined;

  /** Limits, retries, paths and the proxy of calls. */
  @Section(ServiceHttpOptions)
  http?: ServiceHttpOptions | undefined;

  /** Webhooks that the service sends. */
  @Section(ServiceWebhookOptions)
  webhook?: ServiceWebhookOptions | undefined;

  /**
   * Before the application listens, request a token (with OAuth) and list the banks, within 15 s. `warn` logs a failure,
   * `fail` ends the start with a ServiceStartupError. Default `off`. SERVICE_STARTUP_CHECK
   */
  @OneOf('STARTUP_CHECK', 'off', 'warn', 'fail')
  startupCheck?: ServiceStartupCheck | undefined;
}

/** Implemented by the class of `useClass` or `useExisting` in `ServiceModule.forRootAsync()`. */
export interface ServiceOptionsFactory {
  createServiceOptions(): ServiceModuleOptions | Promise<ServiceModuleOptions>;
}

/** The defaults that do not depend on another option. The type of an option without a default includes `undefined`. */
export const DEFAULTS = {
  environment: 'sandbox',
  appTokenHeader: 'service-app-token',
  sendAppTokenWithBearer: false,
  oauth: { refresh: 'ahead', mtls: false },
  tls: { publicRoots: false, reload: true },
  linkSdk: { minTokenLife: 600, includeAppToken: true, requireOAuth: false },
  tokenCache: { maxEntries: 10_000 },
  http: {
    timeout: 30_000,
    connectTimeout: 5_000,
    idleTimeout: 4_000,
    retries: 2,
    maxResponseBytes: 10 * 1024 * 1024,
    maxSockets: 50,
    trailingSlash: false,
    correlationIdHeader: 'x-correlation-id',
    idempotencyHeader: 'idempotency-key',
    logCalls: false,
    shutdownTimeout: 5_000,
  },
  webhook: { header: 'service-signature' },
  startupCheck: 'off',
} satisfies ServiceModuleOptions;

/** The options with the {@link DEFAULTS}. */
export type FilledOptions = Filled<ServiceModuleOptions, typeof DEFAULTS>;

/** Makes the options that have defaults required. A `tls` function has no keys to fill. */
type Filled<Options, Defaults> = Options extends TlsIdentitySource
  ? Options
  : Omit<Options, keyof Defaults> & {
      [Key in keyof Options & keyof Defaults]-?: Defaults[Key] extends object
        ? Filled<NonNullable<Options[Key]>, Defaults[Key]>
        : NonNullable<Options[Key]>;
    };

/** All options with their variables. */
export const OPTIONS: readonly OptionEntry[] = optionsOf(ServiceModuleOptions);

export function entryOf(option: string): OptionEntry | undefined {
  return OPTIONS.find((entry) => entry.option === option);
}

/** The value at an option's path; undefined if it is `undefined` or `null`. */
export function valueOf(options: unknown, option: string): unknown {
  const read = (value: unknown, key: string): unknown => (Object(value) as Record<string, unknown>)[key];
  return option.split('.').reduce(read, options) ?? undefined;
}

/** Sets the value at an option's path. A section is copied first, so that no other object changes. */
export function setValue(options: object, option: string, value: unknown): void {
  const [section, key] = option.split('.');
  Object.assign(options, {
    [section]: key === undefined ? value : { ...(valueOf(options, section) as object), [key]: value },
  });
}

/**
 * Merges options key by key into a new object. The first source that sets a key wins. A `tls` function wins or loses
 * whole.
 */
export function mergeOptions(...sources: readonly (object | undefined)[]): ServiceModuleOptions {
  const sections = sectionsOf(ServiceModuleOptions);
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
