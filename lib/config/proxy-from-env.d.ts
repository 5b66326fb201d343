/** It comes without types. */
declare module 'proxy-from-env' {
  /** Empty where there is none. */
  export function getProxyForUrl(url: string): string;
}
