/** It comes without types. */
declare module 'proxy-from-env' {
  /** Empty without a proxy. */
  export function getProxyForUrl(url: string): string;
}
