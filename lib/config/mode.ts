import {
  DEFAULTS,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
} from './options.js';

/** The settings that decide which other options are required. */
export interface Mode {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  hasCertificate: boolean;
  wantsOAuth: boolean;
  /** `oauth.mtls`: token requests present the client certificate, and the token is bound to it. */
  bindsTokens: boolean;
  given: ServiceModuleOptions;
}

/** The mode, from options and defaults. Undefined if one of the options that decide it is not valid (`broken`). */
export function modeOf(given: ServiceModuleOptions, broken: ReadonlySet<string>): Mode | undefined {
  if (['environment', 'authentication', 'urls', 'oauth', 'tls'].some((option) => broken.has(option))) {
    return undefined;
  }
  const { environment = DEFAULTS.environment, oauth = {}, tls = {} } = given;
  const { authentication = environment === 'production' ? 'mtls' : 'app-token' } = given;
  return {
    environment,
    authentication,
    given,
    hasCertificate: typeof tls === 'function' || (tls.certificate ?? tls.privateKey) !== undefined,
    wantsOAuth: authentication === 'oauth' || (oauth.clientId ?? oauth.clientSecret) !== undefined,
    bindsTokens: oauth.mtls === true,
  };
}

/** The value of an option in a message: `'sandbox' (the default)`. */
export function quoteSetting(option: 'environment' | 'authentication', mode: Mode): string {
  return `'${mode[option]}'${mode.given[option] === undefined ? ' (the default)' : ''}`;
}
