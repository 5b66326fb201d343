import { type ConfigurationFault } from '../errors/index.js';
import {
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  valueOf,
} from './options.js';

/** A value is undefined where its option is not valid. Nothing that depends on it is reported then. */
export interface Mode {
  environment?: ServiceEnvironment;
  authentication?: ServiceAuthentication;
  hasCertificate?: boolean;
  wantsOAuth: boolean;
}

const SANDBOX_ONLY = "'app-token' is for the sandbox only; in production use 'mtls' or 'oauth'.";

/**
 * The mode by the options and their defaults. What an option needs is reported also where its own value is not valid.
 */
export function modeOf(
  options: ServiceModuleOptions,
  broken: ReadonlySet<string>,
): { mode: Mode; faults: ConfigurationFault[] } {
  const { tls } = options;
  const isSet = (option: string): boolean =>
    broken.has(option) || (valueOf(options, option) ?? undefined) !== undefined;
  const environment = broken.has('environment') ? undefined : (options.environment ?? 'sandbox');
  const byDefault = environment && (environment === 'production' ? 'mtls' : 'app-token');
  const named = broken.has('authentication') ? undefined : (options.authentication ?? byDefault);
  const contradiction = environment === 'production' && named === 'app-token';
  const authentication = contradiction ? undefined : named;
  const mode = {
    environment,
    authentication,
    hasCertificate: broken.has('tls')
      ? undefined
      : typeof tls === 'function' || isSet('tls.certificate') || isSet('tls.privateKey'),
    wantsOAuth: authentication === 'oauth' || isSet('oauth.clientId') || isSet('oauth.clientSecret'),
  };
  return { mode, faults: contradiction ? [{ option: 'authentication', message: SANDBOX_ONLY }] : [] };
}

/** Options that are missing because another option needs them: specification 5.1, 5.2 and 5.3. */
export function missingRequirements(options: ServiceModuleOptions, mode: Mode): ConfigurationFault[] {
  const { authentication, hasCertificate, wantsOAuth } = mode;
  const { appToken, oauth } = options;
  const sendsAppToken = authentication === 'mtls' || authentication === 'app-token';
  const faults: ConfigurationFault[] = [];
  const refuseIf = (condition: unknown, option: string, message: string): void => {
    if (condition) faults.push({ option, message });
  };
  refuseIf(
    authentication === 'mtls' && hasCertificate === false,
    'tls.certificate',
    "is missing: 'mtls' needs the application certificate and its private key (developer portal, authentication section: generate certificate).",
  );
  refuseIf(
    sendsAppToken && appToken === undefined,
    'appToken',
    `is missing: '${authentication}' sends it with every call.`,
  );
  refuseIf(wantsOAuth && oauth?.clientId === undefined, 'oauth.clientId', oauthMissing('the application id'));
  refuseIf(
    wantsOAuth && oauth?.clientSecret === undefined,
    'oauth.clientSecret',
    oauthMissing("the application's client secret"),
  );
  // Not reported where the certificate or app token is missing for the authentication itself, as above.
  refuseIf(
    oauth?.mtls === true && authentication !== 'mtls' && hasCertificate === false,
    'oauth.mtls',
    'needs a client certificate: set tls.certificate and tls.privateKey.',
  );
  refuseIf(
    options.linkSdk?.requireOAuth === true && !wantsOAuth,
    'linkSdk.requireOAuth',
    'needs OAuth credentials: set oauth.clientId and oauth.clientSecret. Where OAuth is enabled for the application, a LinkSDK session without a customer token fails.',
  );
  for (const option of ['sendAppTokenWithBearer', 'linkSdk.includeAppToken']) {
    refuseIf(
      valueOf(options, option) === true && !sendsAppToken && appToken === undefined,
      option,
      'needs the app token: set appToken.',
    );
  }
  return faults;
}

function oauthMissing(what: string): string {
  return `is missing: OAuth needs ${what} (developer portal, Integration tab).`;
}
