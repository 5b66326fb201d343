import { type ConfigurationFault, type DescribeOption } from '../errors/index.js';
import { type AddressChoice } from './choose-addresses.js';
import { type Mode, quoteSetting } from './mode.js';
import { ENVIRONMENT, environmentProxy, isProxyUrl, proxyVariable } from './proxy.js';
import { PROXY_MESSAGE } from './rules.js';

/** Checks the options that depend on each other, as docs/service.md#authentication describes. */
export function unmetRequirements(
  mode: Mode,
  { certificateFor, faults }: AddressChoice,
  describe: DescribeOption,
): ConfigurationFault[] {
  const { environment, authentication, hasCertificate, wantsOAuth, given } = mode;
  const { oauth = {}, linkSdk = {} } = given;
  const found: ConfigurationFault[] = [];
  const addFault = (option: string, message: string): void => void found.push({ option, message });
  const addMissing = (option: string, why: string): void =>
    void found.push({ option, message: `is missing: ${why}`, isMissing: true });
  if (environment === 'production' && authentication === 'app-token') {
    addFault('authentication', "'app-token' is for the sandbox only; in production use 'mtls' or 'oauth'.");
    return found;
  }
  if (certificateFor === 'mtls' && !hasCertificate) {
    const orOAuth = ` If calls send a bearer token instead, set ${describe('authentication')} to 'oauth'.`;
    const mayMeanOAuth = given.authentication === undefined && oauth.clientId !== undefined;
    addMissing(
      'tls.certificate',
      `${quoteSetting('authentication', mode)} needs the application certificate and its private key (developer portal, authentication section: generate certificate).${mayMeanOAuth ? orOAuth : ''}`,
    );
  } else if (certificateFor === 'oauth.mtls' && !hasCertificate) {
    addFault('oauth.mtls', 'needs a client certificate: set tls.certificate and tls.privateKey.');
  }
  if (given.appToken === undefined) {
    const wanted =
      (given.sendAppTokenWithBearer === true && 'sendAppTokenWithBearer') ||
      (linkSdk.includeAppToken === true && 'linkSdk.includeAppToken');
    if (authentication !== 'oauth')
      addMissing('appToken', `${quoteSetting('authentication', mode)} sends it with every call.`);
    else if (wanted) addMissing('appToken', `${describe(wanted)} needs it.`);
  }
  const portal = '(developer portal, Integration tab).';
  if (wantsOAuth && oauth.clientId === undefined) {
    addMissing('oauth.clientId', `OAuth needs the application id ${portal}`);
  }
  if (wantsOAuth && oauth.clientSecret === undefined) {
    addMissing('oauth.clientSecret', `OAuth needs the application's client secret ${portal}`);
  }
  if (linkSdk.requireOAuth === true && !wantsOAuth) {
    addFault(
      'linkSdk.requireOAuth',
      'needs OAuth credentials: set oauth.clientId and oauth.clientSecret. If OAuth is enabled for the application, a LinkSDK session without a customer token fails.',
    );
  }
  if (given.http?.proxy === ENVIRONMENT && proxyVariable() !== undefined && !isProxyUrl(environmentProxy())) {
    addFault('http.proxy', PROXY_MESSAGE);
  }
  return [...found, ...faults];
}

/**
 * Finds a missing app token of LinkSDK sessions, which is worth a warning. In modes whose calls need the app token too, its
 * absence is a fault instead.
 */
export function findMissingSdkAppToken({ authentication, given }: Mode): ConfigurationFault[] {
  const { appToken, linkSdk, sendAppTokenWithBearer } = given;
  if (authentication !== 'oauth' || appToken !== undefined || sendAppTokenWithBearer) return [];
  if (linkSdk?.includeAppToken !== undefined) return [];
  const message =
    'is not set, but every LinkSDK session needs it. The app token is public, and usually the application id. If the application has no LinkSDK sessions, set linkSdk.includeAppToken to false.';
  return [{ option: 'appToken', message }];
}
