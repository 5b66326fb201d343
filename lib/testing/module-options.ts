import {
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  type ServiceUrls,
} from '../config/options.js';
import { variablePrefix } from '../config/names.js';
import { type IssuedCertificate } from './certificate-authority.js';

/** The mode for which the simulator makes options or variables. */
export interface SimulatorModeOptions {
  /** Default: `production`. */
  environment?: ServiceEnvironment | undefined;
  /** Default: `mtls` in production, `app-token` in sandbox. */
  authentication?: ServiceAuthentication | undefined;
  /**
   * Includes OAuth credentials in every mode, for customer tokens. Default: in `moduleOptions()` with `oauth` only, in
   * `env()` always.
   */
  oauth?: boolean | undefined;
  /** Includes a client certificate in every mode. Default: in `moduleOptions()` with `mtls` only, in `env()` always. */
  clientCertificate?: boolean | undefined;
  /** The client certificate to use. Default: `simulator.application`. For others see `issueCertificate()`. */
  certificate?: IssuedCertificate | undefined;
  /** Sets `oauth.mtls`: the client certificate is offered to the token endpoint too. Default: not set. */
  oauthMtls?: boolean | undefined;
  /**
   * False leaves {oauth_base_url} out, so that OAuth calls in production go to {base_url}. Default: true in
   * `moduleOptions()`, false in `env()`.
   */
  oauthBaseUrl?: boolean | undefined;
}

/** The parts of a simulator that its options contain. */
interface SimulatorCredentials {
  urls: Required<ServiceUrls>;
  application: IssuedCertificate;
  appToken: string;
  clientId: string;
  clientSecret: string;
  webhookSecret: string;
  /** The service's public chain, PEM. */
  chain: string;
}

/** Header names that may contain the service's brand, and how webhooks are signed. */
interface BrandSettings {
  appTokenHeader: string;
  webhookHeader: string;
  webhookAlgorithm: string;
  webhookPrefix?: string | undefined;
}

/** ServiceModuleOptions in which every secret is a text. */
export interface SimulatorModuleOptions extends ServiceModuleOptions {
  environment: ServiceEnvironment;
  authentication: ServiceAuthentication;
  urls: ServiceUrls;
  appToken: string;
  oauth?: { clientId: string; clientSecret: string; mtls?: boolean };
  tls: { certificate?: string; privateKey?: string; passphrase?: string; chain: string };
  webhook: { secret: string; header?: string; algorithm?: string; prefix?: string | undefined };
}

export const DEFAULT_BRAND = {
  appTokenHeader: 'service-app-token',
  webhookHeader: 'service-signature',
  webhookAlgorithm: 'sha512',
} satisfies BrandSettings;

/** Makes the options of `ServiceModule.forRoot()` for a mode. */
export function makeModuleOptions(
  simulator: SimulatorCredentials,
  { appTokenHeader, webhookHeader, webhookAlgorithm, webhookPrefix }: BrandSettings,
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
    ...(appTokenHeader !== DEFAULT_BRAND.appTokenHeader && { appTokenHeader }),
    ...(withOAuth && { oauth: { ...credentials, ...offer } }),
    tls: { ...(withCertificate ? identity : {}), chain: simulator.chain },
    webhook: {
      secret: simulator.webhookSecret,
      ...(webhookHeader !== DEFAULT_BRAND.webhookHeader && { header: webhookHeader }),
      ...(webhookAlgorithm !== DEFAULT_BRAND.webhookAlgorithm && { algorithm: webhookAlgorithm }),
      ...(webhookPrefix !== undefined && { prefix: webhookPrefix }),
    },
  };
}

/**
 * Makes the options as environment variables, by default with all credentials. PEMs get `\n`-escaped newlines, so that each fits on a line of a .env file.
 * The names are listed here, because the table of options in config/ would make the command load class-validator.
 */
export function makeVariables(
  simulator: SimulatorCredentials,
  service: BrandSettings & { oauthEnabled: boolean },
  given: SimulatorModeOptions & { name?: string | undefined },
): Record<string, string> {
  const {
    name,
    oauth: withOAuth = service.oauthEnabled,
    clientCertificate = true,
    oauthBaseUrl = false,
  } = given;
  const mode = { ...given, oauth: withOAuth, clientCertificate, oauthBaseUrl };
  const options = makeModuleOptions(simulator, service, mode);
  const prefix = variablePrefix(name);
  const { urls, oauth, tls, webhook } = options;
  const variables: Record<string, string | undefined> = {
    ENVIRONMENT: options.environment,
    AUTHENTICATION: options.authentication,
    BASE_URL: urls.baseUrl,
    OAUTH_BASE_URL: urls.oauthBaseUrl,
    SANDBOX_URL: urls.sandboxUrl,
    SANDBOX_MTLS_URL: urls.sandboxMtlsUrl,
    AUTH_URL: urls.authUrl,
    SANDBOX_AUTH_URL: urls.sandboxAuthUrl,
    APP_TOKEN: options.appToken,
    APP_TOKEN_HEADER: options.appTokenHeader,
    CLIENT_ID: oauth?.clientId,
    CLIENT_SECRET: oauth?.clientSecret,
    OAUTH_MTLS: oauth?.mtls?.toString(),
    TLS_CERTIFICATE: escapeNewlines(tls.certificate),
    TLS_PRIVATE_KEY: escapeNewlines(tls.privateKey),
    TLS_PASSPHRASE: tls.passphrase,
    TLS_CHAIN: escapeNewlines(tls.chain),
    WEBHOOK_SECRET: webhook.secret,
    WEBHOOK_HEADER: webhook.header,
    WEBHOOK_ALGORITHM: webhook.algorithm,
    WEBHOOK_PREFIX: webhook.prefix,
  };
  const set = Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(set.map(([key, value]) => [`${prefix}${key}`, value]));
}

function escapeNewlines(pem: string | undefined): string | undefined {
  return pem?.replaceAll('\n', '\\n');
}
