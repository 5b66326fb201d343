/** Headers that only the HTTP client may set: a caller could change the connection or name another host with them. */
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

/** True for a header that cannot carry the app token. */
export function isReservedHeader(name: string): boolean {
  const key = name.toLowerCase();
  return (
    EXCHANGE_HEADERS.has(key) || /^(authorization|cookie|user-agent|accept.*|content-.*|__proto__)$/.test(key)
  );
}
