import { type ConfigurationFault, type DescribeOption } from '../errors/index.js';
import { type Mode, nameOf } from './mode.js';
import { ENVIRONMENT, environmentProxy, isProxyUrl, proxyVariable } from './proxy.js';
import { type Addresses } from './resolved-options.js';
import { PROXY_MESSAGE } from './rules.js';

/** Options that another option needs, or does not allow: docs/service.md#authentication. */
export function unmetRequirements(
  mode: Mode,
  certificateFor: Addresses['certificateFor'],
  describe: DescribeOption,
): ConfigurationFault[] {
  const { environment, authentication, hasCertificate, wantsOAuth, given: options } = mode;
  const { appToken, oauth, linkSdk, http } = options;
  const sendsAppToken = authentication === 'mtls' || authentication === 'app-token';
  const wantsAppToken =
    (options.sendAppTokenWithBearer === true && 'sendAppTokenWithBearer') ||
    (linkSdk?.includeAppToken === true && 'linkSdk.includeAppToken');
  const missing = (why: string) => ({ message: `is missing: ${why}`, isMissing: true });
  const oauthNeeds = (what: string) => missing(`OAuth needs ${what} (developer portal, Integration tab).`);
  // If the authentication itself lacks the certificate or app token, nothing else that needs it is reported.
  const found: Record<string, string | ReturnType<typeof missing> | false> = {
    authentication:
      environment === 'production' &&
      options.authentication === 'app-token' &&
      "'app-token' is for the sandbox only; in production use 'mtls' or 'oauth'.",
    'tls.certificate':
      certificateFor === 'mtls' &&
      hasCertificate === false &&
      missing(
        `${nameOf('authentication', mode)} needs the application certificate and its private key (developer portal, authentication section: generate certificate).`,
      ),
    appToken:
      appToken === undefined &&
      (sendsAppToken
        ? missing(`${nameOf('authentication', mode)} sends it with every call.`)
        : wantsAppToken && missing(`${describe(wantsAppToken)} needs it.`)),
    'oauth.clientId': wantsOAuth && oauth?.clientId === undefined && oauthNeeds('the application id'),
    'oauth.clientSecret':
      wantsOAuth && oauth?.clientSecret === undefined && oauthNeeds("the application's client secret"),
    'oauth.mtls':
      certificateFor === 'oauth.mtls' &&
      hasCertificate === false &&
      'needs a client certificate: set tls.certificate and tls.privateKey.',
    'linkSdk.requireOAuth':
      linkSdk?.requireOAuth === true &&
      !wantsOAuth &&
      'needs OAuth credentials: set oauth.clientId and oauth.clientSecret. If OAuth is enabled for the application, a LinkSDK session without a customer token fails.',
    'http.proxy':
      http?.proxy === ENVIRONMENT &&
      proxyVariable() !== undefined &&
      !isProxyUrl(environmentProxy()) &&
      PROXY_MESSAGE,
  };
  return Object.entries(found).flatMap(([option, fault]) =>
    fault ? [{ option, ...(typeof fault === 'string' ? { message: fault } : fault) }] : [],
  );
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
