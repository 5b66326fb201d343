import { describeLocation, type ConfigurationFault, type OptionLocation } from '../errors/index.js';
import { chooseAddresses } from './choose-addresses.js';
import { optionsOf, withDefaults } from './option.js';
import { mergeOptions, OPTIONS, ServiceModuleOptions, valueOf } from './options.js';
import { readSecret, whyUnreadable } from './read-file.js';
import { missingRequirements, modeOf } from './requirements.js';
import {
  type HttpSettings,
  type OAuthSettings,
  type ResolvedOptions,
  type TlsInputs,
  type TlsSettings,
} from './resolved-options.js';
import { Secret, type SecretValue } from './secret.js';
import { ServiceTlsOptions, TlsIdentityPems } from './tls.options.js';
import { type TokenStore } from './token-cache.options.js';
import { FILL_IN, isPlaceholder, validateOptions } from './validate-options.js';
import { variableOf } from './variables.js';
import { VERSION } from './version.js';

const PRINTABLE_ASCII = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
const UNSENDABLE =
  'cannot be sent in a header: it begins or ends with a space, has a line break or another control character, or is ' +
  'not ASCII.';

interface Resolution {
  /** Absent where there are faults. */
  options?: ResolvedOptions;
  /** Set also where there are faults, so that faults of certificates are reported together with the others. */
  tls: TlsSettings;
  faults: ConfigurationFault[];
  /** Values that are allowed, but probably a mistake. */
  warnings: ConfigurationFault[];
}

/** Makes the module's settings of the merged options: sets defaults, reads and wraps secrets, collects all faults. */
export async function resolveOptions(merged: ServiceModuleOptions, name?: string): Promise<Resolution> {
  const location = (option: string): OptionLocation => ({
    option,
    variable: variableOf(option, name, valueOf(merged, option)),
  });
  const located = (fault: ConfigurationFault): ConfigurationFault => ({
    ...fault,
    ...location(fault.option),
  });
  const { faults: malformed, broken } = validateOptions(merged);
  const { mode, faults: contradictions } = modeOf(merged, broken);
  const chosen = chooseAddresses(mode, merged.urls ?? {});
  // A value that is not valid is not reported as missing too.
  const missing = [...missingRequirements(merged, mode), ...chosen.faults].filter(
    ({ option }) => !broken.has(option) && !broken.has(option.split('.')[0]),
  );
  const options = withDefaults(ServiceModuleOptions, without(merged, broken));
  const appToken = await checkedSecret(options.appToken, 'appToken');
  const clientSecret = await checkedSecret(options.oauth?.clientSecret, 'oauth.clientSecret');
  const store = await storeFaults(options.tokenStore);
  const tls = tlsSettings(options, location);
  const found = [
    ...malformed,
    ...contradictions,
    ...missing,
    ...appToken.faults,
    ...clientSecret.faults,
    ...store,
  ];
  const faults = found.map(located);
  const warnings = chosen.warnings.map(located);
  if (faults.length > 0 || !chosen.addresses) return { tls, faults, warnings };
  const { urls: _, ...rest } = options;
  const described = new Map(OPTIONS.map(({ option }) => [option, describeLocation(location(option))]));
  const resolved = {
    ...rest,
    name,
    describeOption: (option) => described.get(option) ?? option,
    authentication: mode.authentication,
    addresses: chosen.addresses,
    appToken: appToken.secret,
    oauth: mode.wantsOAuth ? oauthSettings(options) : undefined,
    tls,
    http: httpSettings(options),
  } as ResolvedOptions;
  return { tls, faults, warnings, options: resolved };
}

function without(options: ServiceModuleOptions, broken: ReadonlySet<string>): ServiceModuleOptions {
  const kept = mergeOptions(options) as Record<string, Record<string, unknown>>;
  for (const option of broken) {
    const [section, key] = option.split('.');
    if (key === undefined) delete kept[section];
    else delete kept[section]?.[key];
  }
  return kept;
}

/** Reads a secret at start-up. A file that cannot be read, is empty or contains a placeholder is a fault. */
async function checkedSecret(
  value: SecretValue | (() => unknown) | undefined,
  option: string,
): Promise<{ secret?: Secret; faults: ConfigurationFault[] }> {
  if (value === undefined || typeof value === 'function') return { faults: [] };
  const path = typeof value === 'string' ? '' : value.file;
  const fault = (message: string) => ({ faults: [{ option, message }] });
  try {
    const secret = await readSecret(value);
    const text = secret.reveal();
    if (text.trim() === '') return fault(`the file ${path} is empty.`);
    if (isPlaceholder(text)) return fault(`the file ${path} still contains a placeholder; ${FILL_IN}`);
    return option === 'appToken' && !PRINTABLE_ASCII.test(text) ? fault(UNSENDABLE) : { secret, faults: [] };
  } catch (error) {
    return fault(whyUnreadable(path, error));
  }
}

/** What the store says of its own settings. An error that it throws may quote them. */
async function storeFaults(store: TokenStore | undefined): Promise<ConfigurationFault[]> {
  try {
    const messages = (await store?.check?.()) ?? [];
    return messages.map((message) => ({ option: 'tokenStore', message }));
  } catch {
    return [{ option: 'tokenStore', message: 'its method check() failed.' }];
  }
}

function oauthSettings({ oauth }: ServiceModuleOptions): OAuthSettings {
  const source = oauth?.clientSecret as NonNullable<typeof oauth>['clientSecret'] & {};
  const fixed = typeof source === 'string' ? new Secret(source) : undefined;
  const clientSecret = async (): Promise<Secret> => {
    if (fixed) return fixed;
    return typeof source === 'function' ? new Secret(await source()) : readSecret(source);
  };
  return { ...oauth, clientSecret } as OAuthSettings;
}

function tlsSettings(
  { tls }: ServiceModuleOptions,
  location: (option: string) => OptionLocation,
): TlsSettings {
  const settings = typeof tls === 'function' ? new ServiceTlsOptions() : { ...tls };
  const pems: TlsInputs = {};
  for (const { option: key } of optionsOf(TlsIdentityPems) as { option: keyof TlsIdentityPems }[]) {
    const value = settings[key];
    // The settings keep a secret only where it is wrapped.
    delete settings[key];
    if (value === undefined) continue;
    pems[key] = { ...location(`tls.${key}`), value: typeof value === 'string' ? new Secret(value) : value };
  }
  return { ...settings, source: typeof tls === 'function' ? tls : pems } as TlsSettings;
}

function httpSettings({ http }: ServiceModuleOptions): HttpSettings {
  return {
    ...http,
    proxy: http?.proxy === undefined ? undefined : new Secret(http.proxy),
    correlationIdHeader: http?.correlationIdHeader?.toLowerCase(),
    userAgent: [http?.userAgent ?? [], `nestjs-service/${VERSION}`].flat().join(' '),
  } as HttpSettings;
}
