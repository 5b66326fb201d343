// The package has no types of its own.
declare module 'proxy-from-env' {
  /** Empty if the variables name no proxy for this address. */
  export function getProxyForUrl(url: string): string;
}
