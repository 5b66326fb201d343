import { getProxyForUrl } from 'proxy-from-env';
import { isLoopback } from './address.js';
import { Secret } from './secret.js';

/** A value of `http.proxy`: the proxies that the variables of the process name. */
export const ENVIRONMENT = 'environment';
/** A value of `http.proxy`: no proxy, whatever the variables of the process name. */
export const NONE = 'none';

/** The proxy for connections to an https address; undefined if they are direct. */
export type ProxyFor = (address: string) => Secret | undefined;

/** The variables that may name a proxy for https addresses, in the order of proxy-from-env. */
const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];
/** HTTP_PROXY is for http addresses. Ours are on loopback, and need no proxy. */
export const PROXY_VARIABLES = [...VARIABLES, 'http_proxy', 'HTTP_PROXY'];
export const NO_PROXY_VARIABLES = ['no_proxy', 'NO_PROXY'];

/** The variable whose proxy `environment` means: the first that is set. */
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
 * @param setting `http.proxy`, checked. The proxy of the environment is read now, so that the one that was checked is
 * used. Which addresses it is for (NO_PROXY) is read with each connection: proxy-from-env knows the process's own only
 */
export function proxyChoice(setting: string | undefined): ProxyFor | undefined {
  if (setting === undefined || setting === NONE) return undefined;
  const isEnvironment = setting === ENVIRONMENT;
  const url = isEnvironment ? environmentProxy() : setting;
  const proxy = url ? new Secret(url) : undefined;
  return (address) =>
    address.startsWith('https:') && (!isEnvironment || getProxyForUrl(address)) ? proxy : undefined;
}

/** @param setting `http.proxy`, checked; @returns for an address, the variable with a proxy for it that is ignored */
export function ignoredProxyChoice(
  setting: string | undefined,
): ((address: string) => string | undefined) | undefined {
  if (setting !== undefined) return undefined;
  return (address) => {
    const { protocol, hostname } = new URL(address);
    const isMeant = protocol === 'https:' && !isLoopback(hostname) && getProxyForUrl(address);
    return isMeant ? proxyVariable() : undefined;
  };
}
