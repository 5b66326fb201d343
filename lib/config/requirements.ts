import { type ConfigurationFault, type DescribeOption } from '../errors/index.js';
import { type Choice } from './choose-addresses.js';
import { type Mode, nameOf } from './mode.js';
import { ENVIRONMENT, environmentProxy, isProxyUrl, proxyVariable } from './proxy.js';
import { PROXY_MESSAGE } from './rules.js';

/** Options that another option needs, or does not allow: docs/service.md#authentication. */
export function unmetRequirements(
  mode: Mode,
  { certificateFor, faults }: Choice,
  describe: DescribeOption,
): ConfigurationFault[] {
  const { environment, authentication, hasCertificate, wantsOAuth, given } = mode;
  const { oauth = {}, linkSdk = {} } = given;
  const found: ConfigurationFault[] = [];
  const refuse = (option: string, message: string): void => void found.push({ option, message });
  const lack = (option: string, why: string): void =>
    void found.push({ option, message: `is missing: ${why}`, isMissing: true });
  if (environment === 'production' && authentication === 'app-token') {
    refuse('authentication', "'app-token' is for the sandbox only; in production use 'mtls' or 'oauth'.");
    return found;
  }
  if (certificateFor === 'mtls' && !hasCertificate) {
    lack(
      'tls.certificate',
      `${nameOf('authentication', mode)} needs the application certificate and its private key (developer portal, authentication section: generate certificate).`,
    );
  } else if (certificateFor === 'oauth.mtls' && !hasCertificate) {
    refuse('oauth.mtls', 'needs a client certificate: set tls.certificate and tls.privateKey.');
  }
  if (given.appToken === undefined) {
    const wanted =
      (given.sendAppTokenWithBearer === true && 'sendAppTokenWithBearer') ||
      (linkSdk.includeAppToken === true && 'linkSdk.includeAppToken');
    if (authentication !== 'oauth')
      lack('appToken', `${nameOf('authentication', mode)} sends it with every call.`);
    else if (wanted) lack('appToken', `${describe(wanted)} needs it.`);
  }
  const portal = '(developer portal, Integration tab).';
  if (wantsOAuth && oauth.clientId === undefined) {
    lack('oauth.clientId', `OAuth needs the application id ${portal}`);
  }
  if (wantsOAuth && oauth.clientSecret === undefined) {
    lack('oauth.clientSecret', `OAuth needs the application's client secret ${portal}`);
  }
  if (linkSdk.requireOAuth === true && !wantsOAuth) {
    refuse(
      'linkSdk.requireOAuth',
      'needs OAuth credentials: set oauth.clientId and oauth.clientSecret. If OAuth is enabled for the application, a LinkSDK session without a customer token fails.',
    );
  }
  if (given.http?.proxy === ENVIRONMENT && proxyVariable() !== undefined && !isProxyUrl(environmentProxy())) {
    refuse('http.proxy', PROXY_MESSAGE);
  }
  return [...found, ...faults];
}

/** The warning if the SDK's sessions have no app token. Where calls need it too, its lack is a fault. */
export function sdkWithoutAppToken({ authentication, given }: Mode): ConfigurationFault[] {
  const { appToken, linkSdk, sendAppTokenWithBearer } = given;
  if (authentication !== 'oauth' || appToken !== undefined || sendAppTokenWithBearer) return [];
  if (linkSdk?.includeAppToken !== undefined) return [];
  const message =
    'is not set, and the LinkSDK needs it in each session. It is public, and mostly the application id. Without LinkSDK sessions, set linkSdk.includeAppToken to false.';
  return [{ option: 'appToken', message }];
}
