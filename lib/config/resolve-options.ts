import {
  type DescribeOption,
  type OptionLocation,
  describeLocation,
  type ConfigurationFault,
} from '../errors/index.js';
import {
  type ServiceAuthentication,
  Options,
  mergeOptions,
  type ServiceModuleOptions,
  type TokenStore,
} from './options.js';
import { type TlsIdentityPems, type TlsIdentitySource, TlsOptions } from './tls.options.js';
import { type ProxyFor, ENVIRONMENT, ignoredProxyChoice, proxyChoice, proxyVariable } from './address.js';
import { Secret, secretReader, checkSecret, isFile } from './secret.js';
import { withModuleName } from '../telemetry/telemetry.js';
import { systemClock, within } from '../time/time.js';
import { chooseAddresses, modeOf, checkRequirements } from './requirements.js';
import { definedEntries, namesIn, setValue, valueOf } from './option.js';
import { validateOptions, variableOf } from './variables.js';
import { VERSION } from '../version.js';

/**
 * The options after merging, defaults and validation. Secrets are wrapped, so that printing this object shows no
 * secret.
 */
export interface ResolvedOptions extends Omit<
  Options,
  'urls' | 'appToken' | 'oauth' | 'tls' | 'http' | 'webhook'
> {
  locate: (option: string) => OptionLocation;
  describeOption: DescribeOption;
  authentication: ServiceAuthentication;
  addresses: Addresses;
  appToken?: Secret;
  oauth?: OAuthSettings;
  tls: TlsSettings;
  http: HttpSettings;
  webhook: WebhookSettings;
}

export interface Addresses {
  /** The API's address, without a trailing slash. It may have a path. */
  baseUrl: string;
  /** The only origins that calls may go to. */
  origins: ReadonlySet<string>;
  /** `{auth_url}/oauth2/token` of the environment. */
  tokenUrl?: string;
  /** The options that set the two addresses, such as `urls.baseUrl` and `urls.authUrl`. */
  baseOption: string;
  tokenOption?: string;
  /**
   * The setting that requires a client certificate. Undefined if none does, or if a sidecar on plain http has the
   * certificate.
   */
  certificateFor?: 'mtls' | 'oauth.mtls';
}

export interface OAuthSettings extends Omit<Options['oauth'], 'clientSecret'> {
  clientId: string;
  /** Reads the secret again with each call, because a file or a vault may have a new secret. */
  clientSecret: () => Promise<Secret>;
  clientSecretIn: 'text' | 'file' | 'function';
}

interface WebhookSettings extends Omit<Options['webhook'], 'secret'> {
  /** Lower case. */
  header: string;
  /** As {@link OAuthSettings.clientSecret}. Absent if none is configured. */
  secret?: () => Promise<Secret>;
}

/** The options that hold a PEM or a passphrase. */
export type TlsInputKey = Exclude<keyof TlsIdentityPems, 'publicRoots'>;

/** PEMs and passphrase as configured. Files are not read yet. */
export type TlsInputs = { [Key in TlsInputKey]?: Secret | { file: string } };

/** A client certificate without a chain is a fault (`required`) or a warning (`advised`). */
export type ChainNeed = 'required' | 'advised';

export interface TlsSettings {
  /** The PEMs, or the function that returns them. */
  source: TlsInputs | TlsIdentitySource;
  /** Names an option and its variable. With a function as source, no variable sets the option. */
  locate: (option: string) => OptionLocation;
  reload: boolean;
  /** The base of relative paths. Default: the current working directory. */
  folder?: string;
  /** With a function as source, its result says it instead. */
  publicRoots?: boolean;
  /** Undefined if no https connection presents the client certificate. */
  needsChain?: ChainNeed;
}

/** Names of headers are in lower case. `userAgent` is the complete header value. */
export interface HttpSettings extends Omit<Options['http'], 'proxy' | 'trailingSlash'> {
  userAgent: string;
  /** For all resources, or for those with these names. */
  trailingSlash: boolean | readonly string[];
  /** A secret, because the proxy's URL may contain a password. */
  proxyFor?: ProxyFor;
  /** The variable that names a proxy for this address, which is ignored because `http.proxy` is not set. */
  ignoredProxyFor?: (address: string) => string | undefined;
}

interface Resolution {
  /** Absent if there are faults. */
  options?: ResolvedOptions;
  /** Present even with faults, so that faults of certificates can be reported together with them. */
  tls: TlsSettings;
  faults: ConfigurationFault[];
  /** Settings that are allowed, but probably mistakes. */
  warnings: ConfigurationFault[];
}

/**
 * Turns the merged options into settings: validates them, adds defaults, and reads and wraps secrets. Collects all faults.
 * @param name the name of the client, for its events
 * @param variables the variables that messages name: those of the ServiceModule with this name, or none
 */
export async function resolveOptions(
  merged: ServiceModuleOptions,
  name?: string,
  variables: { name?: string } | false = { name },
): Promise<Resolution> {
  const locate = (option: string): OptionLocation => {
    const value = valueOf(merged, option);
    if (option === 'http.proxy' && value === ENVIRONMENT) return { option, variable: proxyVariable() };
    return { option, variable: variables ? variableOf(option, variables.name, value) : undefined };
  };
  const describe = (option: string): string => describeLocation(locate(option));
  const located = (found: readonly ConfigurationFault[]): ConfigurationFault[] =>
    found.map((fault) => ({ ...fault, ...locate(fault.option) }));
  const { faults: malformed, broken } = validateOptions(merged);
  const mode = modeOf(merged, broken);
  const chosen = mode && chooseAddresses(mode);
  const unmet = mode && chosen && checkRequirements(mode, chosen, describe);
  const valid = { ...merged };
  for (const option of broken) setValue(valid, option, undefined);
  const { urls: _, ...options } = mergeOptions(valid, new Options()) as Options;
  const folder = process.cwd();
  const appToken = await checkSecret(options.appToken, 'appToken', folder);
  const clientSecret = await checkSecret(options.oauth.clientSecret, 'oauth.clientSecret', folder);
  const { secret: webhookSource } = options.webhook;
  const webhookSecret = await checkSecret(webhookSource, 'webhook.secret', folder);
  const store = await checkStore(options.tokenStore);
  const tls = { ...tlsSettings(options, locate), folder, needsChain: chosen?.needsChain };
  const secrets = [appToken, clientSecret, webhookSecret].flatMap((secret) => secret.faults);
  const faults = located([...malformed, ...(unmet?.faults ?? []), ...secrets, ...store]);
  const warnings = located(unmet?.warnings ?? []);
  if (faults.length > 0 || !chosen?.addresses || !mode) return { tls, faults, warnings };
  const resolved: ResolvedOptions = {
    ...options,
    locate,
    describeOption: describe,
    authentication: mode.authentication,
    addresses: chosen.addresses,
    appToken: appToken.secret,
    oauth: oauthSettings(options, folder),
    tls,
    http: httpSettings(options.http, name),
    webhook: {
      ...options.webhook,
      header: options.webhook.header.toLowerCase(),
      secret: webhookSource === undefined ? undefined : secretReader(webhookSource, folder),
    },
  };
  return { tls, faults, warnings, options: resolved };
}

const STORE_CHECK_MS = 10_000;

/** The faults that the store finds in its own settings. An error of its check() may quote a secret, so it is not shown. */
async function checkStore(store: TokenStore | undefined): Promise<ConfigurationFault[]> {
  const limit = { clock: systemClock, timeoutMs: STORE_CHECK_MS, expired: () => new Error() };
  const failed = `its method check() failed, or took longer than ${STORE_CHECK_MS / 1000} s.`;
  const messages = await within(limit, async () => store?.check?.()).catch(() => [failed]);
  return (messages ?? []).map((message) => ({ option: 'tokenStore', message }));
}

/** Undefined without OAuth. The checks before this made sure that both credentials are set or neither. */
function oauthSettings({ oauth }: Pick<Options, 'oauth'>, folder: string): OAuthSettings | undefined {
  const { clientId, clientSecret: source, ...settings } = oauth;
  if (clientId === undefined || source === undefined) return undefined;
  const clientSecretIn = typeof source === 'function' ? 'function' : isFile(source) ? 'file' : 'text';
  return { ...settings, clientId, clientSecret: secretReader(source, folder), clientSecretIn };
}

function tlsSettings({ tls }: Pick<Options, 'tls'>, locate: (option: string) => OptionLocation): TlsSettings {
  if (typeof tls === 'function')
    return { ...new TlsOptions(), source: tls, locate: (option) => ({ option }) };
  const { certificate, privateKey, passphrase, chain, ...settings } = tls;
  const pems = definedEntries({ certificate, privateKey, passphrase, chain });
  const hidden = pems.map(([key, pem]) => [key, typeof pem === 'string' ? new Secret(pem) : pem]);
  return { ...settings, source: Object.fromEntries(hidden) as TlsInputs, locate };
}

function httpSettings({ proxy, ...http }: Options['http'], name?: string): HttpSettings {
  return {
    ...http,
    proxyFor: proxyChoice(proxy),
    ignoredProxyFor: ignoredProxyChoice(proxy),
    trailingSlash: typeof http.trailingSlash === 'boolean' ? http.trailingSlash : namesIn(http.trailingSlash),
    onCall: withModuleName(name, http.onCall),
    headers: Object.fromEntries(
      Object.entries(http.headers ?? {}).map(([name, text]) => [name.toLowerCase(), text]),
    ),
    correlationIdHeader: http.correlationIdHeader.toLowerCase(),
    idempotencyHeader: http.idempotencyHeader.toLowerCase(),
    userAgent: [http.userAgent ?? [], `nestjs-service/${VERSION}`].flat().join(' '),
  };
}
