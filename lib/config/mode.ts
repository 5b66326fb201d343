import {
  DEFAULTS,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  valueOf,
} from './options.js';

/** A value is undefined if its option is not valid. Nothing that depends on it is reported then. */
export interface Mode {
  environment?: ServiceEnvironment;
  authentication?: ServiceAuthentication;
  hasCertificate?: boolean;
  given: ServiceModuleOptions;
  wantsOAuth: boolean;
  /** `oauth.mtls`: the token endpoint gets the client certificate too. */
  bindsTokens: boolean;
}

/** The mode, from options and defaults. An option that is not valid (`broken`) still counts as set. */
export function modeOf(options: ServiceModuleOptions, broken: ReadonlySet<string>): Mode {
  const isSet = (option: string): boolean => broken.has(option) || valueOf(options, option) !== undefined;
  const environment = broken.has('environment') ? undefined : (options.environment ?? DEFAULTS.environment);
  const byDefault = environment && (environment === 'production' ? 'mtls' : 'app-token');
  const named = broken.has('authentication') ? undefined : (options.authentication ?? byDefault);
  const authentication = environment === 'production' && named === 'app-token' ? undefined : named;
  const hasCertificate =
    typeof options.tls === 'function' || isSet('tls.certificate') || isSet('tls.privateKey');
  return {
    environment,
    authentication,
    given: options,
    hasCertificate: broken.has('tls') ? undefined : hasCertificate,
    wantsOAuth: authentication === 'oauth' || isSet('oauth.clientId') || isSet('oauth.clientSecret'),
    bindsTokens: valueOf(options, 'oauth.mtls') === true,
  };
}

/** For a message: `'sandbox' (the default)`. */
export function nameOf(option: 'environment' | 'authentication', mode: Mode): string {
  return `'${mode[option]}'${mode.given[option] === undefined ? ' (the default)' : ''}`;
}
