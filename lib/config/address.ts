import { isIPv4 } from 'node:net';

/** What is wrong with an address of the service; undefined where nothing is. Never quotes it: it may hold a password. */
export function addressFault(value: unknown): string | undefined {
  const url = typeof value === 'string' ? parseUrl(value) : undefined;
  if (!url) return 'is not an absolute URL; write it as https://host or https://host/path';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https://';
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return 'must begin with https://; http:// is for loopback addresses only, tokens would travel in the clear';
  }
  if (url.username || url.password) return 'must not hold a user name or password';
  if (url.search || url.hash || /[?#]/.test(value as string)) return 'must have no query and no fragment';
  return undefined;
}

/** The address without slashes at its end, as paths are appended to it. */
export function normalizeAddress(value: string): string {
  const url = new URL(value);
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** The host of an address where it is one of the names that never lead to a service (RFC 2606, RFC 6761). */
export function reservedHost(value: unknown): string | undefined {
  const host = typeof value === 'string' ? parseUrl(value)?.hostname : undefined;
  return host && /(^|\.)(example(\.(com|net|org))?|invalid|test)$/.test(host) ? host : undefined;
}

export function parseUrl(value: string): URL | undefined {
  return URL.canParse(value) ? new URL(value) : undefined;
}

export function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
