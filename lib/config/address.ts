import { isIPv4 } from 'node:net';

/**
 * What is wrong with an address of the service; undefined if it is valid. Never quotes the address: it may contain a
 * password.
 */
export function addressFault(value: unknown): string | undefined {
  const url = parseUrl(value);
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

/** The origin of an address; undefined if the address is not valid. */
export function originOf(address: unknown): string | undefined {
  return addressFault(address) === undefined ? parseUrl(address)?.origin : undefined;
}

function parseUrl(value: unknown): URL | undefined {
  return typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
}

/** Whether the host name of a URL is this machine's. */
export function isLoopback(hostname: string): boolean {
  // A subdomain such as api.localhost is not accepted, because a DNS server may resolve it to another machine.
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
