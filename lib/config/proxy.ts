import { getProxyForUrl } from 'proxy-from-env';
import { isLoopback } from './address.js';
import { Secret } from './secret.js';

/** The value of `http.proxy` for the proxy that the process's environment variables name. */
export const ENVIRONMENT = 'environment';
/** The value of `http.proxy` for no proxy, whatever the environment variables name. */
export const NONE = 'none';

/** Returns the proxy for an address; undefined for a direct connection. */
export type ProxyFor = (address: string) => Secret | undefined;

/** The variables that may name a proxy for https addresses, in the order in which proxy-from-env reads them. */
const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];
/** HTTP_PROXY is not read: it is for http addresses, and ours are loopback addresses, which need no proxy. */
export const PROXY_VARIABLES = [...VARIABLES, 'http_proxy', 'HTTP_PROXY'];
export const NO_PROXY_VARIABLES = ['no_proxy', 'NO_PROXY'];

/** The first variable that is set: `environment` uses its proxy. */
export function proxyVariable(): string | undefined {
  return VARIABLES.find((name) => process.env[name]);
}

export function environmentProxy(): string | undefined {
  return process.env[proxyVariable() ?? ''];
}

export function isProxyUrl(value: unknown): boolean {
  return typeof value === 'string' && /^https?:/i.test(value) && URL.canParse(value);
}

/**
 * The proxy of each address. With `environment`, the proxy's URL is read now, so that the URL that was validated is used.
 * NO_PROXY is read again for each connection, because proxy-from-env reads only the environment of the moment.
 * @param setting a valid `http.proxy`
 */
export function proxyChoice(setting: string | undefined): ProxyFor | undefined {
  if (setting === undefined || setting === NONE) return undefined;
  const isEnvironment = setting === ENVIRONMENT;
  const url = isEnvironment ? environmentProxy() : setting;
  const proxy = url ? new Secret(url) : undefined;
  return (address) =>
    address.startsWith('https:') && (!isEnvironment || getProxyForUrl(address)) ? proxy : undefined;
}

/**
 * If `http.proxy` is not set, the environment's proxy is ignored. Hints of connection faults then name the variable
 * that would have named a proxy for the address.
 * @param setting a valid `http.proxy`
 */
export function ignoredProxyChoice(
  setting: string | undefined,
): ((address: string) => string | undefined) | undefined {
  if (setting !== undefined) return undefined;
  return (address) => {
    const { protocol, hostname } = new URL(address);
    const hasProxy = protocol === 'https:' && !isLoopback(hostname) && getProxyForUrl(address);
    return hasProxy ? proxyVariable() : undefined;
  };
}
