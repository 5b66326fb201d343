import { isIPv4 } from 'node:net';

/** The fault of an address of the service, if any. Never quotes it: it may contain a password. */
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

/** Removes the slashes at the end. A regular expression would need quadratic time for a text of many slashes. */
export function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** The origin of an address; undefined if it is not valid. */
export function originOf(address: unknown): string | undefined {
  return addressFault(address) === undefined ? parseUrl(address)?.origin : undefined;
}

/** Undefined if the value is not an absolute URL. */
function parseUrl(value: unknown): URL | undefined {
  return typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
}

/** Whether a host name of an address means this machine. */
export function isLoopback(hostname: string): boolean {
  // Not api.localhost: a DNS server may know it as another machine.
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
