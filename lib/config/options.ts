import { ValidateIf } from 'class-validator';
import { ServiceHttpOptions } from './http.options.js';
import { ServiceLinkSdkOptions } from './link-sdk.options.js';
import { ServiceOAuthOptions } from './oauth.options.js';
import { optionsOf, Section, sectionsOf, setEntries, type OptionEntry } from './option.js';
import { Flag, IsHeaderName, IsSourceOrFunction, IsTokenStore, OneOf } from './rules.js';
import { type SecretSource } from './secret.js';
import { ServiceTlsOptions, type TlsIdentitySource } from './tls.options.js';
import { ServiceTokenCacheOptions, type TokenStore } from './token-cache.options.js';
import { ServiceUrls } from './urls.options.js';
import { ServiceWebhookOptions } from './webhook.options.js';

/** `production` or `sandbox`. */
export type ServiceEnvironment = 'production' | 'sandbox';

/** What happens if the start-up check fails. */
export type ServiceStartupCheck = 'off' | 'warn' | 'fail';

/** How calls of the API are authenticated: docs/service.md#authentication. */
export type ServiceAuthentication = 'mtls' | 'oauth' | 'app-token';

/**
 * The options of `ServiceModule.forRoot()`. An option that is left out is read from its environment variable, named at the
 * end of its description.
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
   * Mostly the application id; it is public. Sent with `mtls` and `app-token`, and part of the SDK's parameters. A file, or a
   * function that returns it within 8 s (vault, KMS), is read once at the start. SERVICE_APP_TOKEN(_FILE)
   */
  @IsSourceOrFunction('APP_TOKEN')
  appToken?: SecretSource | undefined;

  /** Default `service-app-token`. SERVICE_APP_TOKEN_HEADER */
  @IsHeaderName('APP_TOKEN_HEADER')
  appTokenHeader?: string | undefined;

  /**
   * Send the app token beside the bearer too, to every address. Default false, as the service refuses both on most paths
   * (docs/service.md#both-in-one-call). SERVICE_SEND_APP_TOKEN_WITH_BEARER
   */
  @Flag('SEND_APP_TOKEN_WITH_BEARER')
  sendAppTokenWithBearer?: boolean | undefined;

  /** OAuth client credentials: needed for `oauth`, and for customer tokens (docs/service.md#oauth). */
  @Section(ServiceOAuthOptions)
  oauth?: ServiceOAuthOptions | undefined;

  /** The client certificate, its key and the service's chain; or a function that returns them. SERVICE_TLS_* */
  @Section(ServiceTlsOptions)
  @ValidateIf((_, tls) => typeof tls !== 'function')
  tls?: ServiceTlsOptions | TlsIdentitySource | undefined;

  /** Sessions of the browser's SDK. */
  @Section(ServiceLinkSdkOptions)
  linkSdk?: ServiceLinkSdkOptions | undefined;

  /** The tokens kept in this process. */
  @Section(ServiceTokenCacheOptions)
  tokenCache?: ServiceTokenCacheOptions | undefined;

  /** Tokens shared between processes. */
  @IsTokenStore()
  tokenStore?: TokenStore | undefined;

  /** Limits, retries, paths and proxy of calls. */
  @Section(ServiceHttpOptions)
  http?: ServiceHttpOptions | undefined;

  /** Webhooks that the service sends. */
  @Section(ServiceWebhookOptions)
  webhook?: ServiceWebhookOptions | undefined;

  /**
   * Before the application listens: get a token, with OAuth, and call the banks, in 15 s at most. `warn` logs
   * what is wrong, `fail` ends the start with a ServiceStartupError. Default `off`. SERVICE_STARTUP_CHECK
   */
  @OneOf('STARTUP_CHECK', 'off', 'warn', 'fail')
  startupCheck?: ServiceStartupCheck | undefined;
}

/** Implemented by the class of `useClass` or `useExisting` in `ServiceModule.forRootAsync()`. */
export interface ServiceOptionsFactory {
  createServiceOptions(): ServiceModuleOptions | Promise<ServiceModuleOptions>;
}

/** The defaults that do not depend on another option. An option without a default has `undefined` in its type. */
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

/** For `tls`, a function stays as it is. */
type Filled<Options, Defaults> = Options extends TlsIdentitySource
  ? Options
  : Omit<Options, keyof Defaults> & {
      [Key in keyof Options & keyof Defaults]-?: Defaults[Key] extends object
        ? Filled<NonNullable<Options[Key]>, Defaults[Key]>
        : NonNullable<Options[Key]>;
    };

/** All options, each with its variable. */
export const OPTIONS: readonly OptionEntry[] = optionsOf(ServiceModuleOptions);

export function entryOf(option: string): OptionEntry | undefined {
  return OPTIONS.find((entry) => entry.option === option);
}

/** The value at an option's path; undefined if it is not set or null. */
export function valueOf(options: unknown, option: string): unknown {
  const read = (value: unknown, key: string): unknown => (Object(value) as Record<string, unknown>)[key];
  return option.split('.').reduce(read, options) ?? undefined;
}

/** Sets the value at an option's path, in a section of its own. */
export function setValue(options: object, option: string, value: unknown): void {
  const [section, key] = option.split('.');
  Object.assign(options, {
    [section]: key === undefined ? value : { ...(valueOf(options, section) as object), [key]: value },
  });
}

/** Copies of the options, merged key by key. The first that is set wins. A `tls` function is not merged with others. */
export function mergeOptions(...sources: readonly (object | undefined)[]): ServiceModuleOptions {
  const sections = sectionsOf(ServiceModuleOptions);
  const merged = new Map<string, unknown>();
  for (const [key, value] of sources.flatMap((source) => setEntries(source))) {
    const first = merged.get(key);
    const isSection =
      Object.hasOwn(sections, key) && typeof value === 'object' && typeof (first ?? value) === 'object';
    const both = (): object => Object.fromEntries([value, first].flatMap((each) => setEntries(each)));
    merged.set(key, isSection ? both() : (first ?? value));
  }
  return Object.fromEntries(merged);
}
