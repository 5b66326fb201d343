import { type ConfigurationFault } from '../errors/index.js';
import { chooseAddresses } from './addresses.js';
import { type ServiceModuleOptions, type TlsIdentityPems } from './options.js';
import { readSecret, readSecretOrFault } from './read-secret.js';
import { missingRequirements, modeOf } from './requirements.js';
import {
  type OAuthSettings,
  type ResolvedOptions,
  type TlsInputs,
  type TlsSettings,
} from './resolved-options.js';
import { Secret } from './secret.js';
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
  const options = without(merged, broken);
  // What is there but malformed was meant: it still asks for what belongs to it.
  const { hasOAuth, hasCertificate } = modeOf(merged);
  const mode = { ...modeOf(options), hasOAuth, hasCertificate };
  const wantsOAuth = mode.authentication === 'oauth' || mode.hasOAuth;
  const addresses = chooseAddresses({ ...mode, needsToken: wantsOAuth, urls: options.urls ?? {} });
  const appToken = await readAppToken(options);
  const secret = await checkClientSecret(options);
  const faults = [
    ...malformed,
    ...[...missingRequirements(options, mode), ...addresses.faults].filter(
      ({ option }) => !broken.has(option),
    ),
    ...appToken.faults,
    ...secret,
  ].map((fault) => ({ ...fault, variable: fault.variable ?? variableOf(fault.option, name) }));
  const tls = tlsSettings(options, name);
  if (faults.length > 0 || !addresses.addresses) return { tls, faults };
  return {
    tls,
    faults,
    options: {
      name,
      environment: mode.environment,
      authentication: mode.authentication,
      addresses: addresses.addresses,
      appToken: appToken.secret,
      appTokenHeader: options.appTokenHeader ?? 'service-app-token',
      sendAppTokenWithBearer: options.sendAppTokenWithBearer ?? false,
      oauth: wantsOAuth ? oauthSettings(options) : undefined,
      tls,
      linkSdk: { minTokenLife: 600, includeAppToken: false, ...options.linkSdk },
      tokenCache: { maxEntries: 10_000, ...options.tokenCache },
      tokenStore: options.tokenStore,
      http: httpSettings(options),
    },
  };
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

function oauthSettings({ oauth = {} }: ServiceModuleOptions): OAuthSettings {
  const source = oauth.clientSecret as NonNullable<typeof oauth.clientSecret>;
  const fixed = typeof source === 'string' ? new Secret(source) : undefined;
  return {
    clientId: oauth.clientId as string,
    clientSecret: async () => {
      if (fixed) return fixed;
      return typeof source === 'function' ? new Secret(await source()) : readSecret(source);
    },
    clientSecretCanChange: fixed === undefined,
    refresh: oauth.refresh ?? 'ahead',
    mtls: oauth.mtls ?? false,
  };
}

function tlsSettings({ tls }: ServiceModuleOptions, name?: string): TlsSettings {
  if (typeof tls === 'function') return { source: tls, reload: true };
  const source: TlsInputs = {};
  for (const key of [
    'certificate',
    'privateKey',
    'passphrase',
    'chain',
  ] satisfies (keyof TlsIdentityPems)[]) {
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

function httpSettings({ http = {} }: ServiceModuleOptions): ResolvedOptions['http'] {
  return {
    timeout: http.timeout ?? 30_000,
    retries: http.retries ?? 2,
    maxResponseBytes: http.maxResponseBytes ?? 10 * 1024 * 1024,
    maxSockets: http.maxSockets ?? 50,
    trailingSlash: http.trailingSlash ?? false,
    proxy: http.proxy === undefined ? undefined : new Secret(http.proxy),
    adapter: http.adapter ?? 'node',
    correlationIdHeader: (http.correlationIdHeader ?? 'x-correlation-id').toLowerCase(),
    shutdownTimeout: http.shutdownTimeout ?? 5_000,
  };
}
