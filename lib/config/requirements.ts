import { type ConfigurationFault } from '../errors/index.js';
import {
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  valueOf,
} from './options.js';

/** What is undefined here is not known, as its option is malformed: nothing that depends on it is a fault. */
export interface Mode {
  environment?: ServiceEnvironment;
  authentication?: ServiceAuthentication;
  hasCertificate?: boolean;
  wantsOAuth: boolean;
}

const SANDBOX_ONLY =
  "'app-token' is for the sandbox only (specification 5.2.6); in production use 'mtls' or 'oauth'.";

/** The mode that the options name, with its defaults. What is malformed was meant, and still asks for the rest. */
export function modeOf(
  options: ServiceModuleOptions,
  broken: ReadonlySet<string>,
): { mode: Mode; faults: ConfigurationFault[] } {
  const { tls } = options;
  const isMeant = (option: string): boolean =>
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
      : typeof tls === 'function' || isMeant('tls.certificate') || isMeant('tls.privateKey'),
    wantsOAuth: authentication === 'oauth' || isMeant('oauth.clientId') || isMeant('oauth.clientSecret'),
  };
  return { mode, faults: contradiction ? [{ option: 'authentication', message: SANDBOX_ONLY }] : [] };
}

/** What the options need of each other: specification 5.1, 5.2 and 5.3. */
export function missingRequirements(options: ServiceModuleOptions, mode: Mode): ConfigurationFault[] {
  const { authentication, hasCertificate, wantsOAuth } = mode;
  const { appToken, oauth, linkSdk } = options;
  const sendsAppToken = authentication === 'mtls' || authentication === 'app-token';
  const faults: ConfigurationFault[] = [];
  const refuseIf = (condition: unknown, option: string, message: string): void => {
    if (condition) faults.push({ option, message });
  };
  refuseIf(
    authentication === 'mtls' && hasCertificate === false,
    'tls.certificate',
    "is missing: 'mtls' needs the application certificate and its private key (portal: Authentication, generate certificate).",
  );
  refuseIf(
    sendsAppToken && appToken === undefined,
    'appToken',
    `is missing: '${authentication}' sends it with every call (specification 5.2.5, 5.2.6).`,
  );
  refuseIf(wantsOAuth && oauth?.clientId === undefined, 'oauth.clientId', oauthMissing('the application id'));
  refuseIf(
    wantsOAuth && oauth?.clientSecret === undefined,
    'oauth.clientSecret',
    oauthMissing("the application's client secret"),
  );
  // Where calls send the app token or the certificate anyway, their absence was reported above.
  refuseIf(
    oauth?.mtls === true && authentication !== 'mtls' && hasCertificate === false,
    'oauth.mtls',
    'needs a client certificate: set tls.certificate and tls.privateKey.',
  );
  for (const option of ['sendAppTokenWithBearer', 'linkSdk.includeAppToken']) {
    const isSet = option === 'sendAppTokenWithBearer' ? options[option] : linkSdk?.includeAppToken;
    refuseIf(
      isSet === true && !sendsAppToken && appToken === undefined,
      option,
      'needs the app token: set appToken.',
    );
  }
  return faults;
}

function oauthMissing(what: string): string {
  return `is missing: OAuth needs ${what} (dashboard, Integration tab; specification 5.3).`;
}
