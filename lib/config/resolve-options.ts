import { type ConfigurationFault } from '../errors/index.js';
import { chooseAddresses } from './addresses.js';
import { optionsOf, withDefaults } from './option.js';
import { ServiceModuleOptions } from './options.js';
import { readSecret, readSecretOrFault } from './read-secret.js';
import { missingRequirements, modeOf } from './requirements.js';
import {
  type HttpSettings,
  type OAuthSettings,
  type ResolvedOptions,
  type TlsInputs,
  type TlsSettings,
} from './resolved-options.js';
import { Secret } from './secret.js';
import { TlsIdentityPems } from './tls.options.js';
import { validateOptions } from './validate-options.js';
import { variableOf } from './variables.js';

const PRINTABLE_ASCII = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;

export interface Resolution {
  /** Absent where there are faults. */
  options?: ResolvedOptions;
  /** Always there, so that the faults of certificates can be reported together with the others. */
  tls: TlsSettings;
  faults: ConfigurationFault[];
}

/** Merged options -> what the module works with: defaults set, secrets read and wrapped, every fault collected. */
export async function resolveOptions(merged: ServiceModuleOptions, name?: string): Promise<Resolution> {
  const malformed = validateOptions(merged);
  const broken = new Set(malformed.map(({ option }) => option));
  const usable = without(merged, broken);
  // What is there but malformed was meant: it still asks for what belongs to it.
  const { hasOAuth, hasCertificate } = modeOf(merged);
  const mode = { ...modeOf(usable), hasOAuth, hasCertificate };
  const wantsOAuth = mode.authentication === 'oauth' || mode.hasOAuth;
  const chosen = chooseAddresses({ ...mode, needsToken: wantsOAuth, urls: usable.urls ?? {} });
  const appToken = await readAppToken(usable);
  const secret = await checkClientSecret(usable);
  const faults = [
    ...malformed,
    ...[...missingRequirements(usable, mode), ...chosen.faults].filter(({ option }) => !broken.has(option)),
    ...appToken.faults,
    ...secret,
  ].map((fault) => ({ ...fault, variable: fault.variable ?? variableOf(fault.option, name) }));
  const options = withDefaults(ServiceModuleOptions, usable);
  const tls = tlsSettings(options, name);
  if (faults.length > 0 || !chosen.addresses) return { tls, faults };
  const { urls: _, ...rest } = options;
  const resolved = {
    ...rest,
    name,
    authentication: mode.authentication,
    addresses: chosen.addresses,
    appToken: appToken.secret,
    oauth: wantsOAuth ? oauthSettings(options) : undefined,
    tls,
    http: httpSettings(options),
  };
  return { tls, faults, options: resolved as ResolvedOptions };
}

/** A malformed value is reported once, for its form; it must not lead to a second report that it is missing. */
function without(options: ServiceModuleOptions, broken: ReadonlySet<string>): ServiceModuleOptions {
  const entries = Object.entries(options).flatMap(([key, value]: [string, unknown]): [string, unknown][] => {
    if (broken.has(key)) return [];
    if (typeof value !== 'object' || value === null || key === 'tokenStore') return [[key, value]];
    return [
      [key, Object.fromEntries(Object.entries(value).filter(([inner]) => !broken.has(`${key}.${inner}`)))],
    ];
  });
  return Object.fromEntries(entries);
}

async function readAppToken(
  options: ServiceModuleOptions,
): Promise<{ secret?: Secret; faults: ConfigurationFault[] }> {
  if (options.appToken === undefined) return { faults: [] };
  const read = await readSecretOrFault(options.appToken, 'appToken');
  if (!read.secret || PRINTABLE_ASCII.test(read.secret.reveal())) return read;
  const message =
    'cannot be sent in a header: it has a line break, another control character, or is not ASCII.';
  return { faults: [{ option: 'appToken', message }] };
}

async function checkClientSecret({ oauth }: ServiceModuleOptions): Promise<ConfigurationFault[]> {
  const secret = oauth?.clientSecret;
  if (secret === undefined || typeof secret === 'function') return [];
  return (await readSecretOrFault(secret, 'oauth.clientSecret')).faults;
}

function oauthSettings({ oauth }: ServiceModuleOptions): OAuthSettings {
  const source = oauth?.clientSecret as NonNullable<typeof oauth>['clientSecret'] & {};
  const fixed = typeof source === 'string' ? new Secret(source) : undefined;
  const clientSecret = async (): Promise<Secret> => {
    if (fixed) return fixed;
    return typeof source === 'function' ? new Secret(await source()) : readSecret(source);
  };
  return { ...oauth, clientSecret, clientSecretCanChange: fixed === undefined } as OAuthSettings;
}

function tlsSettings({ tls }: ServiceModuleOptions, name?: string): TlsSettings {
  if (typeof tls === 'function') return { source: tls, reload: true };
  const source: TlsInputs = {};
  for (const { option: key } of optionsOf(TlsIdentityPems) as { option: keyof TlsIdentityPems }[]) {
    const value = tls?.[key];
    if (value === undefined) continue;
    const option = `tls.${key}`;
    source[key] = {
      option,
      variable: variableOf(option, name),
      value: typeof value === 'string' ? new Secret(value) : value,
    };
  }
  return { source, reload: tls?.reload ?? true };
}

function httpSettings({ http }: ServiceModuleOptions): HttpSettings {
  const proxy = http?.proxy === undefined ? undefined : new Secret(http.proxy);
  return {
    ...http,
    proxy,
    correlationIdHeader: http?.correlationIdHeader?.toLowerCase(),
  } as HttpSettings;
}
