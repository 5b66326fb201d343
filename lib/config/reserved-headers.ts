/** They carry the exchange itself, or name another host: HTTP's to set, not a caller's. */
export const EXCHANGE_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** None of these can be the header of the app token. */
export function isReservedHeader(name: string): boolean {
  const key = name.toLowerCase();
  return EXCHANGE_HEADERS.has(key) || /^(authorization|cookie|accept.*|content-.*|__proto__)$/.test(key);
}
