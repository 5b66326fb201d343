import {
  OPTIONS,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  valueOf,
} from '../config/options.js';
import { type ServiceUrls } from '../config/urls.options.js';
import { variableOf } from '../config/variables.js';
import { type IssuedCertificate } from './certificate-authority.js';

/** The mode of the options or variables. */
export interface SimulatorModeOptions {
  /** Default `production`. */
  environment?: ServiceEnvironment;
  /** Default: `mtls` in production, `app-token` in sandbox. */
  authentication?: ServiceAuthentication;
  /** Whether there are OAuth credentials in the other modes too, for customer tokens. Default: with `oauth` only. */
  oauth?: boolean;
  /** Whether there is a client certificate with `oauth` too. Default: with `mtls` only. */
  clientCertificate?: boolean;
  /** Another client certificate than `simulator.application`, for example of `issueCertificate()`. */
  certificate?: IssuedCertificate;
  /** `oauth.mtls`: the certificate is offered to the token endpoint too. Default: left out. */
  oauthMtls?: boolean;
  /** False leaves {oauth_base_url} out, so that production bearer calls go to {base_url}. Default true. */
  oauthBaseUrl?: boolean;
}

/** What the options are made from. */
interface Credentials {
  urls: Required<ServiceUrls>;
  application: IssuedCertificate;
  appToken: string;
  clientId: string;
  clientSecret: string;
  /** The service's public chain, PEM. */
  chain: string;
}

/** ServiceModuleOptions with every secret as text. */
export interface SimulatorModuleOptions extends ServiceModuleOptions {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  urls: ServiceUrls;
  appToken: string;
  oauth?: { clientId: string; clientSecret: string; mtls?: boolean };
  tls: { certificate?: string; privateKey?: string; passphrase?: string; chain: string };
}

const DEFAULT_HEADER = 'service-app-token';

/** The options of `ServiceModule.forRoot()` for the mode. */
export function moduleOptionsFor(
  simulator: Credentials,
  appTokenHeader: string,
  mode: SimulatorModeOptions,
): SimulatorModuleOptions {
  const environment = mode.environment ?? 'production';
  const authentication = mode.authentication ?? (environment === 'production' ? 'mtls' : 'app-token');
  const { oauthBaseUrl, ...urls } = simulator.urls;
  const withCertificate =
    authentication === 'mtls' || (mode.clientCertificate ?? mode.certificate !== undefined);
  const withOAuth = authentication === 'oauth' || mode.oauth === true;
  const { certificate, privateKey, passphrase } = mode.certificate ?? simulator.application;
  const identity = { certificate, privateKey, ...(passphrase !== undefined && { passphrase }) };
  const credentials = { clientId: simulator.clientId, clientSecret: simulator.clientSecret };
  const offer = mode.oauthMtls === undefined ? {} : { mtls: mode.oauthMtls };
  return {
    environment,
    authentication,
    urls: mode.oauthBaseUrl === false ? urls : { ...urls, oauthBaseUrl },
    appToken: simulator.appToken,
    ...(appTokenHeader !== DEFAULT_HEADER && { appTokenHeader }),
    ...(withOAuth && { oauth: { ...credentials, ...offer } }),
    tls: { ...(withCertificate ? identity : {}), chain: simulator.chain },
  };
}

/** The same as environment variables. PEMs have `\n`-escaped newlines, so that each fits a line of a .env file. */
export function environmentFor(options: SimulatorModuleOptions, name?: string): Record<string, string> {
  const variables = OPTIONS.map(({ option }) => [variableOf(option, name), valueOf(options, option)] as const)
    .filter(([variable, value]) => variable !== undefined && value !== undefined)
    .map(([variable, value]) => [variable, (value as string | boolean).toString().replaceAll('\n', '\\n')]);
  return Object.fromEntries(variables) as Record<string, string>;
}
