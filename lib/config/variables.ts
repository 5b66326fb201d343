import { type ConfigurationFault } from '../errors/index.js';
import { type ServiceModuleOptions } from './options.js';

type VariableKind = 'text' | 'boolean' | 'integer' | 'secret';

/** Option path -> the variable's name behind the prefix, and how its text is read. `secret` has a `_FILE` variant. */
const VARIABLES: Readonly<Record<string, readonly [suffix: string, kind: VariableKind]>> = {
  environment: ['ENVIRONMENT', 'text'],
  authentication: ['AUTHENTICATION', 'text'],
  'urls.baseUrl': ['BASE_URL', 'text'],
  'urls.oauthBaseUrl': ['OAUTH_BASE_URL', 'text'],
  'urls.sandboxUrl': ['SANDBOX_URL', 'text'],
  'urls.sandboxMtlsUrl': ['SANDBOX_MTLS_URL', 'text'],
  'urls.authUrl': ['AUTH_URL', 'text'],
  'urls.sandboxAuthUrl': ['SANDBOX_AUTH_URL', 'text'],
  appToken: ['APP_TOKEN', 'secret'],
  appTokenHeader: ['APP_TOKEN_HEADER', 'text'],
  sendAppTokenWithBearer: ['SEND_APP_TOKEN_WITH_BEARER', 'boolean'],
  'oauth.clientId': ['CLIENT_ID', 'text'],
  'oauth.clientSecret': ['CLIENT_SECRET', 'secret'],
  'oauth.refresh': ['TOKEN_REFRESH', 'text'],
  'oauth.mtls': ['OAUTH_MTLS', 'boolean'],
  'tls.certificate': ['TLS_CERTIFICATE', 'secret'],
  'tls.privateKey': ['TLS_PRIVATE_KEY', 'secret'],
  'tls.passphrase': ['TLS_PASSPHRASE', 'secret'],
  'tls.chain': ['TLS_CHAIN', 'secret'],
  'tls.reload': ['TLS_RELOAD', 'boolean'],
  'linkSdk.minTokenLife': ['LINK_SDK_MIN_TOKEN_LIFE', 'integer'],
  'linkSdk.includeAppToken': ['LINK_SDK_INCLUDE_APP_TOKEN', 'boolean'],
  'tokenCache.maxEntries': ['TOKEN_CACHE_MAX_ENTRIES', 'integer'],
  'http.timeout': ['HTTP_TIMEOUT', 'integer'],
  'http.retries': ['HTTP_RETRIES', 'integer'],
  'http.maxResponseBytes': ['HTTP_MAX_RESPONSE_BYTES', 'integer'],
  'http.maxSockets': ['HTTP_MAX_SOCKETS', 'integer'],
  'http.trailingSlash': ['HTTP_TRAILING_SLASH', 'boolean'],
  'http.proxy': ['HTTP_PROXY', 'text'],
  'http.adapter': ['HTTP_ADAPTER', 'text'],
  'http.correlationIdHeader': ['HTTP_CORRELATION_ID_HEADER', 'text'],
  'http.shutdownTimeout': ['HTTP_SHUTDOWN_TIMEOUT', 'integer'],
};

/** `SERVICE_`, or `SERVICE_KSA_` for the module named `ksa`. */
export function variablePrefix(name?: string): string {
  return name === undefined ? 'SERVICE_' : `SERVICE_${name.replace(/[^A-Za-z0-9]/g, '_').toUpperCase()}_`;
}

/** The variable that sets an option (`oauth.clientId` -> `SERVICE_CLIENT_ID`), if one does. */
export function variableOf(option: string, name?: string): string | undefined {
  const variable = Object.hasOwn(VARIABLES, option) ? VARIABLES[option] : undefined;
  return variable && variablePrefix(name) + variable[0];
}

/**
 * Options from variables. Empty ones count as not set. A value that does not read as its kind stays text, for the
 * validation to report.
 */
export function readVariables(
  read: (variable: string) => unknown,
  name?: string,
): { options: ServiceModuleOptions; faults: ConfigurationFault[] } {
  const options: Record<string, unknown> = {};
  const faults: ConfigurationFault[] = [];
  for (const [option, [suffix, kind]] of Object.entries(VARIABLES)) {
    const variable = variablePrefix(name) + suffix;
    const value = parseValue(read(variable), kind);
    const file = kind === 'secret' ? parseValue(read(`${variable}_FILE`), 'text') : undefined;
    if (value !== undefined && file !== undefined) {
      faults.push({
        option,
        variable,
        message: `${variable} and ${variable}_FILE are both set; keep one of them.`,
      });
    }
    if (value !== undefined || file !== undefined) {
      setPath(options, option, file === undefined ? value : { file });
    }
  }
  return { options, faults };
}

function parseValue(raw: unknown, kind: VariableKind): unknown {
  if (raw === undefined || raw === null || raw === '') return undefined;
  if (typeof raw !== 'string' || kind === 'secret') return raw;
  const text = raw.trim();
  if (text === '') return undefined;
  if (kind === 'integer' && /^-?\d+$/.test(text)) return Number(text);
  if (kind === 'boolean' && /^(true|1|yes|on)$/i.test(text)) return true;
  if (kind === 'boolean' && /^(false|0|no|off)$/i.test(text)) return false;
  return text;
}

function setPath(target: Record<string, unknown>, path: string, value: unknown): void {
  const [section, key] = path.split('.');
  if (key === undefined) target[section] = value;
  else target[section] = { ...(target[section] as object | undefined), [key]: value };
}
