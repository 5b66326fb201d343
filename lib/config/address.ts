import { isIPv4 } from 'node:net';

const LONGEST = 2_048;

/** What is wrong with an address of the service, if anything. Never quotes it: it may hold a password. */
export function addressFault(value: unknown): string | undefined {
  if (typeof value === 'string' && value.length > LONGEST) return `is longer than ${LONGEST} characters`;
  const url = parseUrl(value);
  if (!url) return 'is not an absolute URL; write it as https://host or https://host/path';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https://';
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return 'must begin with https://; http:// is for loopback addresses only, because it does not protect tokens';
  }
  if (url.username || url.password) return 'must not hold a user name or password';
  if (/[?#]/.test(value as string)) return 'must have no query and no fragment';
  return undefined;
}

/** Without the slashes at its end. (A regular expression would look at each run of slashes once for each slash in it.) */
export function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** Undefined for what is no absolute URL. */
export function parseUrl(value: unknown): URL | undefined {
  return typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
}

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
