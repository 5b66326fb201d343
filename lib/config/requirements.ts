import { type ConfigurationFault } from '../errors/index.js';
import { type ServiceAuthentication, type ServiceEnvironment, type ServiceModuleOptions } from './options.js';

export interface Mode {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  hasCertificate: boolean;
  hasOAuth: boolean;
}

/** The mode that the options name, with its defaults. */
export function modeOf(options: ServiceModuleOptions): Mode {
  const environment = options.environment === 'production' ? 'production' : 'sandbox';
  const tls = options.tls;
  return {
    environment,
    authentication: options.authentication ?? (environment === 'production' ? 'mtls' : 'app-token'),
    hasCertificate:
      typeof tls === 'function' || tls?.certificate !== undefined || tls?.privateKey !== undefined,
    hasOAuth: options.oauth?.clientId !== undefined || options.oauth?.clientSecret !== undefined,
  };
}

/** What the options need of each other: specification 5.1, 5.2 and 5.3. */
export function missingRequirements(options: ServiceModuleOptions, mode: Mode): ConfigurationFault[] {
  const { authentication, environment } = mode;
  const faults: ConfigurationFault[] = [];
  const need = (met: unknown, option: string, message: string): void => {
    if (!met) faults.push({ option, message });
  };
  const wantsOAuth = authentication === 'oauth' || mode.hasOAuth;

  need(
    environment !== 'production' || authentication !== 'app-token',
    'authentication',
    "'app-token' is for the sandbox only (specification 5.2.6); in production use 'mtls' or 'oauth'.",
  );
  need(
    authentication !== 'mtls' || mode.hasCertificate,
    'tls.certificate',
    "is missing: 'mtls' needs the application certificate and its private key (portal: Authentication, generate certificate).",
  );
  need(
    authentication === 'oauth' || options.appToken !== undefined,
    'appToken',
    `is missing: '${authentication}' sends it with every call (specification 5.2.5, 5.2.6).`,
  );
  need(
    !wantsOAuth || options.oauth?.clientId !== undefined,
    'oauth.clientId',
    oauthMissing('the application id'),
  );
  need(
    !wantsOAuth || options.oauth?.clientSecret !== undefined,
    'oauth.clientSecret',
    oauthMissing("the application's client secret"),
  );
  need(
    !options.oauth?.mtls || mode.hasCertificate,
    'oauth.mtls',
    'needs a client certificate: set tls.certificate and tls.privateKey.',
  );
  need(
    !options.sendAppTokenWithBearer || options.appToken !== undefined,
    'sendAppTokenWithBearer',
    'needs the app token: set appToken.',
  );
  need(
    !options.linkSdk?.includeAppToken || options.appToken !== undefined,
    'linkSdk.includeAppToken',
    'needs the app token: set appToken.',
  );
  return faults;
}

function oauthMissing(what: string): string {
  return `is missing: OAuth needs ${what} (dashboard, Integration tab; specification 5.3).`;
}
