import { ValidateIf } from 'class-validator';
import { ServiceHttpOptions } from './http.options.js';
import { ServiceLinkSdkOptions } from './link-sdk.options.js';
import { ServiceOAuthOptions } from './oauth.options.js';
import { Option, optionsOf, Section, type OptionEntry } from './option.js';
import { Flag, IsHeaderName, IsSource, IsTokenStore, OneOf } from './rules.js';
import { type SecretValue } from './secret.js';
import { ServiceTlsOptions, type TlsIdentitySource } from './tls.options.js';
import { ServiceTokenCacheOptions, type TokenStore } from './token-cache.options.js';
import { ServiceUrls } from './urls.options.js';

/** `production` or `sandbox`. */
export type ServiceEnvironment = 'production' | 'sandbox';

/** How calls of the API are authenticated: specification 5.1, 5.2.5 and 5.2.6. */
export type ServiceAuthentication = 'mtls' | 'oauth' | 'app-token';

/**
 * What `ServiceModule.forRoot()` takes. Each option left out is filled from its environment variable (named here
 * after the option), through ConfigModule.
 */
export class ServiceModuleOptions {
  /** Default `sandbox`. SERVICE_ENVIRONMENT */
  @Option('ENVIRONMENT', 'choice')
  @OneOf('production', 'sandbox')
  environment?: ServiceEnvironment | undefined = 'sandbox';

  /** Default `mtls` in production, `app-token` in sandbox. SERVICE_AUTHENTICATION */
  @Option('AUTHENTICATION', 'choice')
  @OneOf('mtls', 'oauth', 'app-token')
  authentication?: ServiceAuthentication | undefined;

  /** The service's addresses. */
  @Section(ServiceUrls)
  urls?: ServiceUrls | undefined;

  /** Sent in the app-token header; needed for `mtls` and `app-token`. SERVICE_APP_TOKEN(_FILE) */
  @Option('APP_TOKEN', 'secret')
  @IsSource()
  appToken?: SecretValue | undefined;

  /** Default `service-app-token`. SERVICE_APP_TOKEN_HEADER */
  @Option('APP_TOKEN_HEADER')
  @IsHeaderName()
  appTokenHeader?: string | undefined = 'service-app-token';

  /** Default false: services of this kind answer 400 to both at once. SERVICE_SEND_APP_TOKEN_WITH_BEARER */
  @Option('SEND_APP_TOKEN_WITH_BEARER', 'boolean')
  @Flag()
  sendAppTokenWithBearer?: boolean | undefined = false;

  /** OAuth client credentials: needed for `oauth`, and for customer tokens (specification 5.3, 5.4). */
  @Section(ServiceOAuthOptions)
  oauth?: ServiceOAuthOptions | undefined;

  /** PEMs and their reload, or a function that returns the PEMs (in place of the SERVICE_TLS_* variables). */
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
  @Option()
  @IsTokenStore()
  tokenStore?: TokenStore | undefined;

  /** Calls: their limits, retries, paths and proxy. */
  @Section(ServiceHttpOptions)
  http?: ServiceHttpOptions | undefined;
}

/** What `useClass` and `useExisting` of ServiceModule.forRootAsync name. */
export interface ServiceOptionsFactory {
  createServiceOptions(): ServiceModuleOptions | Promise<ServiceModuleOptions>;
}

/** Every option there is, with its variable and default. */
export const OPTIONS: readonly OptionEntry[] = optionsOf(ServiceModuleOptions);

/** The value at an option's path. */
export function valueOf(options: ServiceModuleOptions, option: string): unknown {
  return option
    .split('.')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], options);
}
