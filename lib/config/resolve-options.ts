import { describeLocation, type ConfigurationFault, type OptionLocation } from '../errors/index.js';
import { withModuleName } from '../telemetry/call-event.js';
import { systemClock } from '../time/clock.js';
import { within } from '../time/timers.js';
import { chooseAddresses } from './choose-addresses.js';
import { definedEntries } from './option.js';
import { modeOf } from './mode.js';
import {
  DEFAULTS,
  type FilledOptions,
  mergeOptions,
  type ServiceModuleOptions,
  setValue,
  valueOf,
} from './options.js';
import { ENVIRONMENT, ignoredProxyChoice, proxyChoice, proxyVariable } from './proxy.js';
import { secretReader } from './read-file.js';
import { checkSecret } from './check-secret.js';
import { findMissingSdkAppToken, unmetRequirements } from './requirements.js';
import {
  type HttpSettings,
  type OAuthSettings,
  type ResolvedOptions,
  type TlsInputs,
  type TlsSettings,
  type WebhookSettings,
} from './resolved-options.js';
import { namesIn } from './rules.js';
import { isFile, Secret } from './secret.js';
import { type TokenStore } from './token-cache.options.js';
import { validateOptions } from './validate-options.js';
import { variableOf } from './variables.js';
import { VERSION } from '../version.js';

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
 * @param name the name of the ServiceModule
 * @param namesVariables whether messages name the variables of options
 */
export async function resolveOptions(
  merged: ServiceModuleOptions,
  name?: string,
  namesVariables = true,
): Promise<Resolution> {
  const locate = (option: string): OptionLocation => {
    const value = valueOf(merged, option);
    if (option === 'http.proxy' && value === ENVIRONMENT) return { option, variable: proxyVariable() };
    return { option, variable: namesVariables ? variableOf(option, name, value) : undefined };
  };
  const describe = (option: string): string => describeLocation(locate(option));
  const located = (found: readonly ConfigurationFault[]): ConfigurationFault[] =>
    found.map((fault) => ({ ...fault, ...locate(fault.option) }));
  const { faults: malformed, broken } = validateOptions(merged);
  const mode = modeOf(merged, broken);
  const chosen = mode && chooseAddresses(mode);
  const unmet = mode && chosen ? unmetRequirements(mode, chosen, describe) : [];
  const valid = { ...merged };
  for (const option of broken) setValue(valid, option, undefined);
  const { urls: _, ...options } = mergeOptions(valid, DEFAULTS) as FilledOptions;
  const folder = process.cwd();
  const appToken = await checkSecret(options.appToken, 'appToken', folder);
  const clientSecret = await checkSecret(options.oauth?.clientSecret, 'oauth.clientSecret', folder);
  const webhookSecret = await checkSecret(options.webhook?.secret, 'webhook.secret', folder);
  const store = await checkStore(options.tokenStore);
  const tls = { ...tlsSettings(options, locate), folder, needsChain: chosen?.needsChain };
  const secrets = [appToken, clientSecret, webhookSecret].flatMap((secret) => secret.faults);
  const faults = located([...malformed, ...unmet, ...secrets, ...store]);
  const warnings = located(mode ? findMissingSdkAppToken(mode) : []);
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
    webhook: webhookSettings(options, folder),
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
function oauthSettings({ oauth }: FilledOptions, folder: string): OAuthSettings | undefined {
  const { clientId, clientSecret: source, ...settings } = oauth;
  if (clientId === undefined || source === undefined) return undefined;
  const clientSecretIn = typeof source === 'function' ? 'function' : isFile(source) ? 'file' : 'text';
  return { ...settings, clientId, clientSecret: secretReader(source, folder), clientSecretIn };
}

function webhookSettings({ webhook: { secret, header } }: FilledOptions, folder: string): WebhookSettings {
  return {
    header: header.toLowerCase(),
    secret: secret === undefined ? undefined : secretReader(secret, folder),
  };
}

function tlsSettings({ tls }: FilledOptions, locate: (option: string) => OptionLocation): TlsSettings {
  if (typeof tls === 'function') return { ...DEFAULTS.tls, source: tls, locate: (option) => ({ option }) };
  const { certificate, privateKey, passphrase, chain, ...settings } = tls;
  const pems = definedEntries({ certificate, privateKey, passphrase, chain });
  const hidden = pems.map(([key, pem]) => [key, typeof pem === 'string' ? new Secret(pem) : pem]);
  return { ...settings, source: Object.fromEntries(hidden) as TlsInputs, locate };
}

function httpSettings({ proxy, ...http }: FilledOptions['http'], name?: string): HttpSettings {
  return {
    ...http,
    proxyFor: proxyChoice(proxy),
    ignoredProxyFor: ignoredProxyChoice(proxy),
    trailingSlash: typeof http.trailingSlash === 'boolean' ? http.trailingSlash : namesIn(http.trailingSlash),
    onCall: withModuleName(name, http.onCall),
    correlationIdHeader: http.correlationIdHeader.toLowerCase(),
    idempotencyHeader: http.idempotencyHeader.toLowerCase(),
    userAgent: [http.userAgent ?? [], `nestjs-service/${VERSION}`].flat().join(' '),
  };
}
