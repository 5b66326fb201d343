import { isIPv4 } from 'node:net';
import { getProxyForUrl } from 'proxy-from-env';
import { Secret } from './secret.js';

/**
 * What is wrong with an address of the service; undefined if it is valid. Never quotes the address: it may contain a
 * password.
 */
export function addressFault(value: unknown): string | undefined {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (!url) return 'is not an absolute URL; write it as https://host or https://host/path';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https://';
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return 'must begin with https://; http:// is for loopback addresses only, because it does not protect tokens';
  }
  if (url.username || url.password) return 'must not contain a user name or password';
  if (/[?#]/.test(value as string)) return 'must have no query and no fragment';
  return undefined;
}

/** Removes trailing slashes. A regular expression would take quadratic time for a text with many slashes. */
export function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** Whether the host name of a URL is this machine's. */
export function isLoopback(hostname: string): boolean {
  // A subdomain such as api.localhost is not accepted, because a DNS server may resolve it to another machine.
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}

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
