import { ValidateIf } from 'class-validator';
import { ServiceHttpOptions } from './http.options.js';
import { ServiceLinkSdkOptions } from './link-sdk.options.js';
import { ServiceOAuthOptions } from './oauth.options.js';
import { optionsOf, Section, sectionsOf, definedEntries, type OptionEntry } from './option.js';
import { Flag, IsHeaderName, IsSourceOrFunction, IsTokenStore, OneOf } from './rules.js';
import { type SecretSource } from './secret.js';
import { ServiceTlsOptions, type TlsIdentitySource } from './tls.options.js';
import { ServiceTokenCacheOptions, type TokenStore } from './token-cache.options.js';
import { ServiceUrls } from './urls.options.js';
import { ServiceWebhookOptions } from './webhook.options.js';

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
