import {
  DEFAULTS,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
} from './options.js';

/** What decides which other options are needed. */
export interface Mode {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  hasCertificate: boolean;
  wantsOAuth: boolean;
  /** `oauth.mtls`: the token endpoint gets the client certificate too. */
  bindsTokens: boolean;
  given: ServiceModuleOptions;
}

/** The mode, from options and defaults. Undefined if it cannot be known, as one of them is not valid (`broken`). */
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

/** For a message: `'sandbox' (the default)`. */
export function nameOf(option: 'environment' | 'authentication', mode: Mode): string {
  return `'${mode[option]}'${mode.given[option] === undefined ? ' (the default)' : ''}`;
}
